"""Jobs by name: processes find a place in them without numbers."""

from __future__ import annotations

from dataclasses import replace

import httpx
import pytest

from serene.controller.commands.view import whole
from serene.controller.jobs.errors import BadRequest, Conflict
from serene.controller.jobs.job import Elastic, Job, JobState, Worker, WorkerState
from serene.controller.jobs.jobs import Jobs
from serene.controller.jobs.named import (
    ALL_DIFFER_S,
    BACK_S,
    CLAIMED_S,
    HEARING_S,
    PATIENCE_S,
    STILL_THERE_S,
    VACANT_S,
    Asks,
    Awaits,
    Complete,
    Dead,
    Named,
    Place,
)
from serene.controller.jobs.plans import Readmission, Waiting
from serene.racks import Racks
from serene.strategy import BSP
from tests.controller.planning import NOW, at, left, new_jobs, reason, started
from tests.controller.processes import Start as StartController
from tests.controller.processes import serenectl, until
from tests.controller.statuses import printed

SETTINGS = {"workers": 2, "every": 1}


class Office:
    """Names without a switch, and a clock that the test sets."""

    def __init__(self, elastic: Elastic | None = None) -> None:
        self.jobs: Jobs = new_jobs()
        self.elastic = elastic
        self.silent: dict[int, float] = {}
        self.named = Named(self.jobs, self._silent_s)
        self.now = 100.0

    def _silent_s(self, job: Job, worker: Worker) -> float:
        return self.silent.get(worker.id, 0.0)

    def come(self, process: str, name: str = "gpt", rack: int | None = None, **settings: object) -> object:
        """As the coordinator does: the job is made when all are there."""
        said = {**SETTINGS, **settings}
        asks = Asks(process, 2, said, 2**20, 2**20, rack, self.elastic)  # type: ignore[arg-type]
        found = self.named.come(name, asks, self.now)
        if isinstance(found, Complete):
            racks = None if found.racks is None else Racks.of([found.racks.get(rack, 0) for rack in range(2)])
            made = self.jobs.create(len(found.processes), BSP(), racks=racks, elastic=found.asked.elastic)
            self.named.made(made, name, found, self.now)
            return self.come(process, name, rack, **settings)
        return found

    def running(self) -> Job:
        """A job whose workers are processes a and b."""
        self.come("a")
        self.come("b")
        started(self.jobs)
        self.now += CLAIMED_S
        return self.jobs[0]


def test_first_processes_create_the_named_job() -> None:
    office = Office()
    assert office.come("a") == Awaits("1 of 2 processes of job 'gpt' are here")
    assert office.come("b") == Place(office.jobs[0], 1)
    assert office.come("a") == Place(office.jobs[0], 0), "it asks again"
    assert (office.jobs[0].name, office.jobs[0].settings) == ("gpt", SETTINGS)
    assert isinstance(office.come("c", "another"), Awaits)


def test_process_that_stops_asking_is_forgotten() -> None:
    office = Office()
    office.come("a")
    office.now += STILL_THERE_S
    assert office.come("b") == Awaits("1 of 2 processes of job 'gpt' are here")
    office.come("c")
    assert office.come("b") == Place(office.jobs[0], 0)


def test_named_job_uses_the_coarsest_unit_of_its_processes() -> None:
    office = Office()
    office.named.come("gpt", Asks("a", 2, SETTINGS, 2**24, 2**20), office.now)
    complete = office.named.come("gpt", Asks("b", 2, SETTINGS, 2**18, 2**20), office.now)
    assert isinstance(complete, Complete) and complete.scale == 2**18


def test_differing_settings_are_reported_to_all_processes() -> None:
    """Also to one that comes a little later; then the name is free."""
    office = Office()
    office.come("a")
    said = "the processes of job 'gpt' differ: every is 1 in 1 process and 4 in 1 process"
    for process, every in (("b", 4), ("a", 1)):
        with pytest.raises(Conflict, match=said):
            office.come(process, every=every)
    assert office.come("c") == Awaits("1 of 2 processes of job 'gpt' are here")


def test_processes_beyond_the_job_are_not_remembered() -> None:
    """Otherwise thousands of processes would each be compared with all others, and be listed in a long line."""
    office, heard = Office(), set()
    for number in range(100):
        asks = Asks(f"p{number}", 10, {"every": number}, 1, 1)
        try:
            heard.add(str(office.named.come("gpt", asks, office.now)))
        except Conflict as refusal:
            heard.add(str(refusal))
    assert len(office.named._gatherings["gpt"].arrivals) == 10
    assert max(map(len, heard)) < 200
    each = " and ".join(f"{number} in 1 process" for number in range(4))
    assert f"the processes of job 'gpt' differ: every is {each} and others in 6 processes" in heard
    office.now += STILL_THERE_S
    assert office.come("a") and office.come("b") and isinstance(office.come("c"), Awaits)


def test_named_job_with_too_many_workers_is_refused_at_once() -> None:
    office = Office()
    most = office.jobs.max_workers
    with pytest.raises(BadRequest, match=f"job 'gpt': {most + 1} workers: expected 1 to {most}"):
        office.named.come("gpt", Asks("a", most + 1, SETTINGS, 1, 1), office.now)


def test_differing_settings_are_reported_without_missing_processes() -> None:
    office = Office()

    def come(process: str, workers: int) -> object:
        return office.named.come("gpt", Asks(process, workers, {"workers": workers}, 1, 1), office.now)

    come("a", 3)
    said = "differ: workers is 3 in 1 process and 4 in 1 process"
    waits = come("b", 4)
    assert isinstance(waits, Awaits) and said in waits.why
    office.now += ALL_DIFFER_S
    for process, workers in (("a", 3), ("b", 4)):
        with pytest.raises(Conflict, match=said):
            come(process, workers)
    with pytest.raises(Conflict, match="workers is 3 in 2 processes and 4 in 1 process"):
        come("c", 3)
    office.now += HEARING_S + 0.1
    assert isinstance(come("d", 3), Awaits)


def test_new_process_gets_the_place_of_a_silent_worker() -> None:
    office = Office()
    job = office.running()
    assert office.come("c") == Awaits("all 2 places of job 'gpt' are taken: waits until a place is free")
    office.silent[1] = VACANT_S
    assert office.come("c") == Place(job, 1)
    assert isinstance(office.come("d"), Awaits), "the place was just given"
    elsewhere = replace(at(7), incarnation=99)
    plan = office.jobs.hello(0, 1, elsewhere, 5, NOW)
    assert isinstance(plan, Readmission) and plan.new == elsewhere
    office.jobs.readmitted(plan, NOW)
    refused = office.jobs.hello(0, 1, replace(at(8), incarnation=98), 5, NOW)
    assert reason(refused).startswith("worker 1 of job 0 is at port 7"), "nobody gave it the place"


def test_process_beyond_the_places_is_refused() -> None:
    office = Office()
    office.running()
    office.come("c")
    office.now += PATIENCE_S + 0.1
    with pytest.raises(Conflict, match="all 2 places of job 'gpt' are taken by living workers: start fewer processes"):
        office.come("c")


def test_place_of_a_worker_that_left_is_kept_for_its_last_read() -> None:
    """Its place is free once it has stopped repeating LEAVE, and only after those of silent members."""
    office = Office()
    job = office.running()
    office.jobs.left(office.jobs.plan_leave(0, 0, at(1), None), NOW)
    job.workers[0].left_at = office.now
    assert isinstance(office.come("c"), Awaits)
    office.now += VACANT_S
    job.workers[0].left_at = office.now
    assert isinstance(office.come("c"), Awaits)
    office.now += VACANT_S
    office.silent[1] = VACANT_S
    assert office.come("c") == Place(job, 1)
    office.come("d")
    office.now += VACANT_S
    assert office.come("d") == Place(job, 0)


def test_differing_newcomer_is_refused_unless_all_are_silent() -> None:
    office = Office()
    job = office.running()
    office.silent = {0: VACANT_S}
    with pytest.raises(Conflict, match="job 'gpt' runs already: every is 1 for the others and 2 for this process"):
        office.come("c", every=2)
    office.silent[1] = VACANT_S
    assert office.come("c", every=2) == Dead(job)


def test_named_job_over_racks_assigns_places_by_rack() -> None:
    office = Office()
    office.come("a", rack=1)
    office.come("b", rack=0)
    job = office.jobs[0]
    assert list(job.racks.sizes) == [1, 1]
    assert office.come("a", rack=1) == Place(job, 1) and office.come("b", rack=0) == Place(job, 0)


def test_newcomer_gets_a_free_place_first() -> None:
    """Then a place that was left, then that of the member that has been silent for longest."""
    office = Office(Elastic(4, 1, 2.0))
    job = office.running()
    office.silent = {0: VACANT_S, 1: 2 * VACANT_S}  # they are evicted before long, so nobody takes their places first
    assert [office.come(process) for process in "cd"] == [Place(job, 2), Place(job, 3)]
    assert [office.come(process) for process in "ef"] == [Place(job, 1), Place(job, 0)]
    assert isinstance(office.come("g"), Awaits)

    office = Office(Elastic(4, 1, 2.0))
    job = office.running()
    job.workers[0].state = WorkerState.LEFT
    assert [office.come(process) for process in "cde"] == [Place(job, 2), Place(job, 3), Place(job, 0)]


def test_places_after_a_lost_session_are_kept_for_their_workers() -> None:
    """Until it is clear which workers do not come back."""
    office = Office()
    job = office.running()
    job.reset()
    office.silent = {0: BACK_S - 0.1, 1: BACK_S - 0.1}
    assert isinstance(office.come("c"), Awaits)
    office.now += PATIENCE_S + 0.1
    office.silent = {0: BACK_S, 1: BACK_S}
    assert isinstance(office.jobs.hello(0, 0, at(1), 5, NOW), Waiting)
    assert office.come("c") == Place(job, 1)


def test_elastic_places_after_a_lost_session_become_free_soon() -> None:
    """At once for a worker that was evicted for silence, and for others after the time in which they would have
    come."""
    office = Office(Elastic(2, 1, 2.0))
    job = office.running()
    job.workers[1].state, job.silenced = WorkerState.EVICTED, frozenset({1})
    job.reset()
    office.silent = dict.fromkeys(range(2), 0.1)
    assert office.come("c") == Place(job, 1)
    assert isinstance(office.come("d"), Awaits)
    office.silent = {0: VACANT_S}
    assert office.come("d") == Place(job, 0)


def test_named_jobs_forget_gatherings_of_gone_processes() -> None:
    office = Office()
    for number in range(50):
        office.come("a", f"job {number}")
        office.now += STILL_THERE_S
    assert len(office.named._gatherings) <= 2


# -- over HTTP -----------------------------------------------------------------------------------------------


def body(process: str, **changes: object) -> dict[str, object]:
    return {
        "name": "gpt", "process": process, "workers": 2, "settings": dict(SETTINGS), "scale": 2**20, "limit": 2**20,
        **changes,
    }  # fmt: skip


def test_places_are_requested_over_http(start: StartController) -> None:
    controller = start("--gone-after", "1")
    with httpx.Client(base_url=controller.url, trust_env=False, timeout=120.0) as http:

        def ask(process: str, **changes: object) -> httpx.Response:
            return http.post("/v1/places", json=body(process, **changes))

        assert ask("a").json()["waits"] == "1 of 2 processes of job 'gpt' are here"
        for command, out, err in (
            ("explain", "not started yet: 1 of 2 processes of job 'gpt' are here\n", ""),
            ("sync bsp", "", "error: not started yet: 1 of 2 processes of job 'gpt' are here\n"),
        ):
            ask("a")  # it asks several times a second
            ended = serenectl(*command.split(), "--controller", controller.url)
            assert (ended.stdout, ended.stderr) == (out, err)
        ask("a")
        status = controller.client.status()
        assert "not started yet: 1 of 2 processes of job 'gpt' are here" in printed(whole(status), 80)
        assert ask("b").json() == {"job": 0, "worker": 1, "rack": 0, "place": 1, "waits": ""}
        assert ask("a").json()["worker"] == 0
        job = controller.client.job(0)
        assert (job.name, job.scale, job.limit, job.state) == ("gpt", 2**20, 1.0, JobState.WAITING)
        until(lambda: not controller.client.jobs(), "a named job that nobody joins is over")
        assert isinstance(ask("a", strategy={"name": "asp"}).json()["waits"], str)


@pytest.mark.targets("embedded")
def test_commands_take_a_job_by_its_name(start: StartController) -> None:
    controller = start("--gone-after", "600")

    def is_made() -> bool:
        for process in "ab":
            httpx.post(f"{controller.url}/v1/places", json=body(process), trust_env=False, timeout=120.0)
        return bool(controller.client.jobs())

    until(is_made, "both processes have places")
    controller.client.create_job(2, BSP())
    for command, status, out, err in (
        ("sync asp --job gpt", 0, "job 0: BSP -> ASP, when it starts\n", ""),
        ("sync asp --job gtp", 2, "", "error: there is no job 'gtp' (jobs: 0 (gpt), 1)\n"),
        ("jobs delete --job gpt", 0, "job 0 deleted\n", ""),
    ):
        ended = serenectl(*command.split(), "--controller", controller.url)
        assert (ended.returncode, ended.stdout, ended.stderr) == (status, out, err), ended


def test_newcomer_gets_a_dead_members_place_rather_than_a_left_one() -> None:
    """Everybody waits for the dead member. Whether it is dead is known after a while only."""
    office = Office()
    job = office.running()
    left(office.jobs, 0)
    job.workers[0].left_at, office.silent[1] = office.now - VACANT_S, 1.0
    assert isinstance(office.come("c"), Awaits)
    office.now += VACANT_S
    office.silent[1] += VACANT_S
    assert office.come("c") == Place(job, 1)
