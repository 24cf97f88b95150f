"""Tasks on every executor that a study may have: processes, a real dask scheduler with two workers, submitit's.

There is no SLURM in the tests: submitit's local executor writes and pickles what the one for SLURM does, and begins a
process where that calls sbatch.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from serene.experiments.shared import build, driver, pool, slurm
from serene.experiments.shared.clusters import Cluster
from serene.experiments.shared.driver import TRIES, ClusterFailed, Done, work_off
from tests.clusters.dask import Dask
from tests.clusters.tasks import do, ignore_sigterm, stubborn, unpicklable
from tests.controller.processes import until
from tests.runs import Marked

KINDS = ("here", "dask", "submitit")


@pytest.fixture
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    if request.param == "dask":
        yield request.getfixturevalue("dask")
    elif request.param == "submitit":
        options = tmp_path / "options.toml"
        options.write_text('kind = "local"\nat_once = 2\n[submitit]\ntimeout_min = 5\n')
        yield Cluster("slurm", options)
    else:
        yield Cluster()


everywhere = pytest.mark.parametrize("cluster", KINDS, indirect=True)


def outcomes(cluster: Cluster, tasks: list[str], scratch: Path) -> dict[str, Done[str, str]]:
    with cluster.executor(2, scratch) as executor:
        return {each.task: each for each in work_off(tasks, do, executor)}


@everywhere
def test_failed_task_or_killed_worker_affects_no_other_task(cluster: Cluster, tmp_path: Path) -> None:
    once = f"c:kill-first {tmp_path / 'first'}"
    tasks = ["a", "b:fail", once, "d:kill", "e:data", "f"]
    found = outcomes(cluster, tasks, tmp_path)
    assert set(found) == set(tasks)
    assert {task: each.result for task, each in found.items() if each.trouble is None} == {
        "a": "a done", once: "c done", "f": "f done"
    }  # fmt: skip
    assert (tmp_path / "first").exists(), "its first worker was killed"
    assert str(found["b:fail"].trouble).startswith("ValueError: no b")
    assert str(found["e:data"].trouble).startswith("DataError: ")
    if cluster.where:
        assert f"(on worker {os.uname().nodename}, process " in str(found["e:data"].trouble)
    if not cluster.where.startswith("tcp:"):  # dask's scheduler has a limit of its own
        trouble = str(found["d:kill"].trouble)
        assert trouble.startswith(f"each of {TRIES} workers died while it ran this cell; the last: ")
    else:
        assert "each worker died while it ran this cell: " in str(found["d:kill"].trouble)


@everywhere
def test_executor_yields_results_as_they_complete(cluster: Cluster, tmp_path: Path) -> None:
    """Nothing is left running when the caller stops asking."""
    never = tmp_path / "never"
    with cluster.executor(2, tmp_path) as executor:
        results = work_off(["a", f"b:wait {never}", "c"], do, executor)
        assert {next(results).task, next(results).task} == {"a", "c"}
        results.close()
    never.touch()  # dask's worker has a thread that would wait for it


@everywhere
def test_worker_with_another_serene_version_is_refused(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "this_build", lambda: "version 0.0.1")
    if not cluster.where:
        assert outcomes(cluster, ["a"], tmp_path)["a"].result == "a done", "a process of this one runs the same"
        return
    message = rf"another Serene .* worker .*: {build.this_build()}; the driver's is version 0\.0\.1; install"
    with pytest.raises(ClusterFailed, match=message):
        outcomes(cluster, ["a", "b"], tmp_path)


@pytest.mark.parametrize("cluster", ["submitit"], indirect=True)
def test_job_without_a_result_does_not_delay_others(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network file system may show a result late."""
    monkeypatch.setitem(slurm.RESULT_S, "local", 3600.0)
    with cluster.executor(2, tmp_path) as executor:
        results = work_off(["a:kill", "b", "c"], do, executor)
        assert {next(results).result, next(results).result} == {"b done", "c done"}
        results.close()


@pytest.mark.parametrize(("how", "result"), [("kill-later", None), ("note", "a done")])
def test_dask_task_whose_result_is_lost_is_repeated_or_fails(
    dask: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, result: str | None
) -> None:
    """Its worker dies after the task, and before the driver fetches the result."""
    from distributed import Client

    fetch, killed = Client._gather_remote, False

    async def fetch_from_dead_worker(client: Any, *arguments: Any) -> Any:
        nonlocal killed
        (key,) = client._gather_keys
        if not killed:
            killed = True
            os.kill(int(first.read_text()), signal.SIGKILL)
            while any((await client.scheduler.who_has(keys=[key])).values()):
                await asyncio.sleep(0.05)
        return await fetch(client, *arguments)

    monkeypatch.setattr(Client, "_gather_remote", fetch_from_dead_worker)
    first = tmp_path / "first"
    (found,) = outcomes(dask, [f"a:{how} {first}"], tmp_path).values()
    assert killed and found.result == result
    assert result or "each worker died while it ran this cell: " in str(found.trouble)


def test_dead_dask_scheduler_ends_the_study(tmp_path: Path) -> None:
    with Dask(tmp_path) as dask, contextlib.ExitStack() as stack:
        executor = stack.enter_context(Cluster(dask.address).executor(2, tmp_path))
        results = work_off(["a", f"b:wait {tmp_path / 'never'}"], do, executor)
        assert next(results).result == "a done"
        dask.scheduler.process.kill()
        with pytest.raises(ClusterFailed, match="check that its scheduler runs"):
            next(results)


def test_pool_processes_end_when_their_owner_is_killed(tmp_path: Path) -> None:
    begun = [tmp_path / "begun-1", tmp_path / "begun-2"]
    run = Marked([sys.executable, "-c", POOL, *map(str, begun)], tmp_path / "log")
    try:
        until(lambda: all(task.exists() for task in begun), f"both tasks have begun; its output: {run.output}")
        run.process.kill()
        run.wait(120)
        until(lambda: not run.alive(), "its processes are gone")
    finally:
        run.end()


def test_pool_process_that_ignores_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that has nothing to do. A user's strategy may set a handler."""
    monkeypatch.setattr(pool, "GRACE_S", 0.1)
    begun = tmp_path / "begun"
    with Cluster().executor(2, tmp_path) as executor:
        executor.submit(ignore_sigterm).result()
        executor.submit(stubborn, begun)
        until(begun.exists, "it has begun")


POOL = """
import sys
from pathlib import Path
from serene.experiments.shared.driver import work_off
from serene.experiments.shared.pool import Processes
from tests.clusters.tasks import endless
list(work_off([Path(task) for task in sys.argv[1:]], endless, Processes(2)))
"""


def test_unpicklable_result_fails_with_its_type_error(tmp_path: Path) -> None:
    with (
        Cluster().executor(1, tmp_path) as executor,
        pytest.raises(ClusterFailed, match="TypeError: cannot pickle 'generator' object"),
    ):
        list(work_off(["a"], unpicklable, executor))
