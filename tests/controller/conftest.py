"""One switch for a test module, on each target; a controller for it, and hosts at its ports. Trees of switches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from serene.controller.http.client import ControllerClient
from tests.controller.hosts import Host
from tests.controller.processes import PORTS, ControllerProcess, Start, SwitchProcess, missing, own_network
from tests.controller.trees import Tree
from tests.controller.trees import controller as controller_of


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "targets(*names): the switches on which a test runs, not on both")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that uses the switch of this file runs on both targets, unless a mark names one."""
    if "switch" in metafunc.fixturenames and not hasattr(metafunc.module, "switch"):
        mark = metafunc.definition.get_closest_marker("targets")
        each = {"embedded": "embedded", "bmv2": pytest.param("bmv2", marks=pytest.mark.bmv2)}
        targets = mark.args if mark else tuple(each)
        metafunc.parametrize("switch", [each[target] for target in targets], indirect=True, scope="module")


@pytest.fixture(scope="module")
def switch(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SwitchProcess]:
    lacking = missing(request.param)
    if lacking:
        pytest.skip(f"target {request.param} needs {lacking}")
    with ExitStack() as stack:
        if request.param == "bmv2":
            stack.enter_context(own_network())
        unix = request.param == "bmv2" and getattr(request.module, "ASKS_THE_SWITCH", False)
        process = SwitchProcess(request.param, tmp_path_factory.mktemp("switch") / "switch.log", unix=unix)
        stack.callback(process.stop)
        yield process


@pytest.fixture(scope="module")
def warm() -> bool:
    """Whether the controller starts in a warm Python. Tests that measure its memory override this: what a fork shares
    with its parent counts only from when it is first written to."""
    return True


@pytest.fixture(scope="module")
def controller(
    switch: SwitchProcess, warm: bool, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControllerProcess]:
    process = ControllerProcess(switch, tmp_path_factory.mktemp("controller") / "controller.log", warm=warm)
    yield process
    assert process.stop() == 0
    assert "Traceback" not in process.log.read_text()


def without_jobs(controller: ControllerProcess) -> Iterator[ControllerClient]:
    yield controller.client
    for job in controller.client.jobs():
        controller.client.delete_job(job.job)


@pytest.fixture
def client(controller: ControllerProcess) -> Iterator[ControllerClient]:
    """The controller without jobs."""
    yield from without_jobs(controller)


@pytest.fixture
def hosts(switch: SwitchProcess) -> list[Host]:
    """Hosts 0, 1, ... at ports 1, 2, ..."""
    made = [Host(port, switch.link(port)) for port in range(1, PORTS + 1)]
    for host in made:
        host.forget()
    return made


@pytest.fixture
def start(switch: SwitchProcess, tmp_path: Path) -> Iterator[Start]:
    """Starts controllers; the switch is restarted first, so that it has no program."""
    switch.restart()
    started: list[ControllerProcess] = []

    def start_one(*options: str, warm: bool = True) -> ControllerProcess:
        started.append(ControllerProcess(switch, tmp_path / f"controller-{len(started)}.log", *options, warm=warm))
        return started[-1]

    yield start_one
    for process in started:
        if process.process.poll() is None:
            process.kill()


@pytest.fixture
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tree]:
    """A tree of its own for each test, with so many workers in each rack as the module's SIZES name."""
    if lacking := missing("embedded"):
        pytest.skip(f"the embedded switch needs {lacking}")
    made = Tree(tmp_path, request.module.SIZES)
    yield made
    made.stop()


@pytest.fixture
def daemon(tree: Tree, tmp_path: Path) -> Iterator[ControllerProcess]:
    """A controller for the tree, which the test may have killed."""
    process = controller_of(tree, tmp_path / "controller.log")
    yield process
    process.kill()


@pytest.fixture(scope="module")
def shared_tree(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    """A tree for all tests of a module."""
    made = Tree(tmp_path_factory.mktemp("tree"), request.module.SIZES)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def shared_daemon(shared_tree: Tree, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerProcess]:
    process = controller_of(shared_tree, tmp_path_factory.mktemp("controller") / "controller.log")
    yield process
    assert process.stop() == 0
    assert "Traceback" not in process.log.read_text()


@pytest.fixture
def racks_client(shared_daemon: ControllerProcess) -> Iterator[ControllerClient]:
    """The controller of the module's tree, without jobs."""
    yield from without_jobs(shared_daemon)
