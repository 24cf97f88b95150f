"""Concurrent commands: none undoes another, nor does a late decision of an automatic strategy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import TypeVar

import pytest

from serene.controller.http.client import ControllerClient, Rejected
from serene.strategy import ASP, BSP
from tests.controller.hosts import Host, started
from tests.controller.processes import ControllerProcess, automatic, states, until

pytestmark = pytest.mark.targets("embedded")  # what is tested is the controller's lock

ROUNDS = 8


@pytest.fixture
def client(controller: ControllerProcess, hosts: list[Host]) -> Iterator[ControllerClient]:
    """With a job of three workers."""
    started(controller.client, hosts, BSP())
    yield controller.client
    for job in controller.client.jobs():
        controller.client.delete_job(job.job)


T = TypeVar("T")


def at_once(url: str, *commands: Callable[[ControllerClient], T]) -> list[T]:
    """Runs the commands concurrently, each over its own connection."""
    begin = Barrier(len(commands), timeout=120)

    def give(command: Callable[[ControllerClient], T]) -> T:
        with ControllerClient(url) as client:
            client.jobs()  # the connection is there
            begin.wait()
            return command(client)

    with ThreadPoolExecutor(len(commands)) as pool:
        return list(pool.map(give, commands))


def test_concurrent_evictions_keep_a_last_member(client: ControllerClient) -> None:
    client.evict(0, 1)

    def try_evict(worker: int) -> Callable[[ControllerClient], str]:
        def command(own: ControllerClient) -> str:
            try:
                own.evict(0, worker)
            except Exception as error:
                return str(error)
            return "done"

        return command

    for _ in range(ROUNDS):
        said = at_once(client.url, try_evict(0), try_evict(2))
        assert sorted(said) == ["done", "job 0: the last member cannot be evicted"]
        assert states(client).count("running") == 1
        client.readmit(0, 0)
        client.readmit(0, 2)


def test_decision_about_an_earlier_epoch_is_dropped(client: ControllerClient, tmp_path: Path) -> None:
    """The strategy is asked, the user evicts a worker, and only then does the strategy answer."""
    asked, go, file = tmp_path / "asked", tmp_path / "go", tmp_path / "slow.py"
    file.write_text(
        "import pathlib, time\n"
        "from serene.controller.automatic import Automatic, Decision\n"
        "from serene.strategy import ASP\n"
        "class Slow(Automatic):\n"
        "    period_s = 0.1\n"
        "    def decide(self, seen):\n"
        f"        if pathlib.Path({str(asked)!r}).exists():\n"
        "            return None\n"
        f"        pathlib.Path({str(asked)!r}).touch()\n"
        f"        while not pathlib.Path({str(go)!r}).exists():\n"
        "            time.sleep(0.01)\n"
        "        return Decision(ASP())\n"
    )
    client.set_automatic(0, f"{file}:Slow")
    until(asked.exists, "the program looks")
    client.evict(0, 2)
    go.touch()
    until(lambda: automatic(client).decisions > 1, "it is asked again")
    job = client.job(0)
    assert (states(client), job.strategy) == (["running", "running", "evicted"], BSP())
    assert (automatic(client).changes, automatic(client).trouble) == (0, None)


def test_concurrent_creates_and_deletes_use_each_job_id_once(client: ControllerClient) -> None:
    """Each id is assigned once, whatever other commands run meanwhile."""

    def make_and_delete(own: ControllerClient) -> int:
        job = int(own.create_job(1, ASP()).job)
        own.delete_job(job)
        return job

    for _ in range(ROUNDS):
        made = at_once(client.url, *[lambda own: own.create_job(1, BSP()).job] * 3, *[make_and_delete] * 3)
        kept = made[:3]
        assert len(set(kept)) == 3
        assert {job.job for job in client.jobs()} == {0, *kept}
        at_once(client.url, *[lambda own, job=job: own.delete_job(job) for job in kept])


def test_automatic_strategy_is_set_only_for_the_requested_job(client: ControllerClient, tmp_path: Path) -> None:
    """While its file is loaded, the job is deleted and a new one takes its id."""
    loading, go, file = tmp_path / "loading", tmp_path / "go", tmp_path / "slow.py"
    file.write_text(
        "import pathlib, time\n"
        f"pathlib.Path({str(loading)!r}).touch()\n"
        f"while not pathlib.Path({str(go)!r}).exists():\n"
        "    time.sleep(0.01)\n"
        "def none(seen): return None\n"
    )

    def choose() -> str:
        with ControllerClient(client.url) as own, pytest.raises(Rejected) as refused:
            own.set_automatic(0, f"{file}:none")
        return str(refused.value)

    with ThreadPoolExecutor(1) as pool:
        chosen = pool.submit(choose)
        until(loading.exists, "it is being loaded")
        client.delete_job(0)
        client.create_job(3, BSP(), job=0)
        go.touch()
        assert chosen.result(120) == "job 0 was replaced by another job meanwhile: nothing was changed"
    assert client.job(0).automatic is None
