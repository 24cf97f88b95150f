"""The jobs' state machine, and the places of jobs with a name, without a switch: the plays of jobs.txt."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from enum import Enum
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serene.controller.jobs.job import Elastic, Job
from serene.controller.jobs.jobs import Jobs
from serene.controller.jobs.named import STILL_THERE_S, Asks, Awaits, Complete, Dead, Named, Place
from serene.controller.jobs.plans import Leave, Readmission, Refusal, Start, Swap, Waiting
from serene.controller.jobs.slots import SlotRange, first_fit, free_ranges
from serene.entries import Endpoint
from serene.errors import SereneError
from serene.racks import Racks
from serene.strategy import BSP, parse
from tests.controller.planning import NOW, at, new_jobs, started

PLAYS = dict(re.findall(r"^# (.*)\n((?:.+\n)+)", Path(__file__).with_name("jobs.txt").read_text(), re.MULTILINE))


def numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


class Play:
    """Jobs without a switch, and a clock that the play sets. Each method with ``_`` is a step of that name."""

    def __init__(self) -> None:
        self.jobs = new_jobs()
        self.named = Named(self.jobs, lambda job, worker: self.silent.get(worker.id, 0.0))
        self.silent: dict[int, float] = {}
        self.elastic: Elastic | None = None
        self.clock = 100.0  # the monotonic one
        self.set_by = 0.0
        self.written = True

    @property
    def now(self) -> float:
        """In Unix seconds."""
        return NOW + self.clock - 100.0 + self.set_by

    def step(self, text: str) -> str:
        """Takes a step, and returns what comes of it."""
        for job in self.jobs:
            job.steady = lambda: self.clock
        self.written = not text.startswith("unwritten ")
        name, *words = text.removeprefix("unwritten ").split()
        options = dict(word.split("=") for word in words if "=" in word)
        given = [word for word in words if "=" not in word]
        try:
            if hasattr(self, f"_{name}"):
                return self.outcome(getattr(self, f"_{name}")(*given, **options))
            return self.outcome(getattr(self.jobs[int(options.get("job", 0))], name))
        except SereneError as error:
            return f"{type(error).__name__}: {error}"

    def succeed(self, text: str) -> None:
        """Takes a step that is neither refused nor an error."""
        found = self.step(text)
        assert not re.match(r"refused|[A-Z]\w+: ", found), f"{text}: {found}"

    def outcome(self, found: object) -> str:
        match found:
            case Waiting(missing=()):
                return "waits until the sums are restored"
            case Waiting():
                return f"waits for {', '.join(map(str, found.missing))}"
            case Start():
                return f"starts session {found.policy.session - int(NOW)}, {found.policy.fields}"
            case Readmission():
                return f"moves {self.outcome(found.old)} to {self.outcome(found.new)}, {self.outcome(found.swap)}"
            case Refusal():
                return f"{'has left' if found.has_left else 'refused'}: {found.reason}"
            case Swap():
                return f"epoch {found.policy.epoch}, {found.policy.fields}"
            case Leave():
                epoch = "no epoch" if found.swap is None else self.outcome(found.swap)
                over = "is over" if found.job_over else "continues"
                return f"{epoch}, {over}{'' if found.answered else ', unanswered'}"
            case Place():
                return f"place {found.worker} of job {found.job.id}"
            case Awaits():
                return f"waits: {found.why}"
            case Dead():
                return f"dead: job {found.job.id}"
            case Endpoint():
                return f"{found.port}:{found.udp_port}/{found.incarnation}"
            case Job():
                return f"job {found.id}"
            case Enum():
                return str(found.value)
            case None:
                return "nothing"
        return self.outcome(found()) if callable(found) else str(found)

    # Jobs

    def _lanes(self, lanes: str) -> None:
        """The switch has slots of another size."""
        self.jobs = Jobs(slots=100, lanes=int(lanes), max_jobs=8, max_workers=32)

    def _create(self, workers: str, strategy: str, *, times: str = "1", places: str = "", **options: str) -> Job:
        given = {"pool_slots" if name == "pool" else name: json.loads(value) for name, value in options.items()}
        elastic = Elastic(int(places)) if places else None
        for _ in range(int(times)):
            made = self.jobs.create(int(workers), parse(strategy), elastic=elastic, **given)
        return made

    def _start(self, job: str, *, length: str = "0") -> Start:
        return started(self.jobs, int(job), vector_length=int(length))

    def _running(self, workers: str, strategy: str, **options: str) -> Job:
        made = self._create(workers, strategy, **options)
        self._start(str(made.id))
        return made

    def _hello(
        self, worker: str, *, job: str = "0", port: str = "", udp: str = "4000", incarnation: str = "7",
        length: str = "", session: str = "", **host: str,
    ) -> object:  # fmt: skip
        """length: of its vector; by default the job's, or 5. host: the port whose ``mac`` or ``ip`` it has."""
        known = self.jobs.get(int(job))
        sender = at(int(port or int(worker) + 1), int(udp), int(incarnation))
        sender = replace(sender, **{name: getattr(at(int(of)), name) for name, of in host.items()})
        values = int(length) if length else (known and known.vector_length) or 5
        last = int(NOW) + int(session) if session else 0
        plan = self.jobs.hello(int(job), int(worker), sender, values, self.now, last)
        if isinstance(plan, Start) and self.written:
            self.jobs.started(plan, self.now)
        elif isinstance(plan, Readmission):
            self.jobs.readmitted(plan, self.now) if self.written else self.jobs.not_readmitted(plan)
        return plan

    def _commit(self, plan: Swap | None) -> Swap | None:
        if plan is not None and self.written:
            self.jobs.swapped(plan, self.now)
        return plan

    def _swap(self, strategy: str, *, job: str = "0") -> Swap | None:
        return self._commit(self.jobs.plan_swap(int(job), parse(strategy)))

    def _choose(self, strategy: str) -> None:
        self.jobs.choose(0, parse(strategy))

    def _has(self, strategy: str) -> bool:
        return self.jobs.has_already(0, parse(strategy))

    def _bits(self, bits: str, *, job: str = "0") -> Swap | None:
        return self._commit(self.jobs.plan_precision(int(job), int(bits)))

    def _part(self, worker: str) -> list[int]:
        return self.jobs.taking_part(0, [int(worker)])

    def _evict(self, *workers: str, silenced: str = "") -> Swap | None:
        """These workers and no others. silenced: those of them that are evicted for silence."""
        plan = self.jobs.plan_barrier(0, self.jobs[0].in_force, map(int, workers), "requested")
        self.jobs[0].silenced = frozenset(numbers(silenced))
        return self._commit(plan)

    def _leave(
        self, worker: str, *, job: str = "0", sent: str = "", active: str = "", session: str = "", died: str = ""
    ) -> Leave:
        last = int(NOW) + int(session) if session else 0
        plan = self.jobs.plan_leave(
            int(job),
            int(worker),
            at(int(worker) + 1),
            int(sent) if sent else None,
            numbers(active),
            last,
            numbers(died),
        )
        if self.written:
            self.jobs.left(plan, self.now)
            self.jobs[int(job)].workers[int(worker)].left_at = self.clock
        return plan

    def _report(self, worker: str) -> int:
        return self.jobs.report(0, int(worker), at(int(worker) + 1), {"iteration": 1}, self.clock)

    def _lose(self, *held: str, active: str = "") -> list[int]:
        """The switch has only these jobs. active: the workers that were heard recently."""
        return self.jobs.switch_has_only([*map(int, held)], lambda job: numbers(active))

    def _restored(self) -> Swap | None:
        plan = self.jobs.plan_restored(0)
        self.jobs.restored(0, plan, self.now)
        return plan

    def _delete(self, job: str) -> None:
        self.jobs.delete(int(job))

    def _cleared(self, job: str) -> None:
        self.jobs.cleared(int(job))

    def _due(self) -> list[int]:
        return self.jobs.due(self.clock, 5)

    def _reads(self, answers: str) -> None:
        self.jobs[0].note_reads(int(answers), self.clock)

    def _last(self, session: str) -> None:
        """The switch has had a session of this number."""
        self.jobs.note_session(int(session))

    def _wait(self, seconds: str) -> None:
        self.clock += float(seconds)

    def _set(self, seconds: str) -> None:
        """Somebody sets the machine's clock."""
        self.set_by += float(seconds)

    # What a job has

    def _jobs(self) -> str:
        return " ".join(str(job.id) for job in self.jobs)

    def _states(self) -> str:
        return " ".join(worker.state.value for worker in self.jobs[0].workers)

    def _who(self) -> str:
        job = self.jobs[0]
        return f"members {job.members()}, evicted {job.evicted()}, restorers {job.restorers()}"

    def _worker(self, worker: str, what: str) -> object:
        return getattr(self.jobs[0].workers[int(worker)], what)

    def _history(self) -> str:
        return "; ".join(
            f"{past.t - NOW:g} s: {past.epoch} {past.strategy} {past.reason}" for past in self.jobs[0].history
        )

    # Jobs with a name

    def _elastic(self, places: str, minimum: str, evict_after: str) -> None:
        """The workers of jobs with a name come and go."""
        self.elastic = Elastic(int(places), int(minimum), float(evict_after))

    def _come(
        self, process: str, *, name: str = "gpt", workers: str = "2", every: str = "1", scale: str = "1048576",
        rack: str = "",
    ) -> object:  # fmt: skip
        """A process asks for a place, and the job is made when all are there, as by the coordinator."""
        settings = {"workers": int(workers), "every": int(every)}
        asks = Asks(process, int(workers), settings, int(scale), 2**20, int(rack) if rack else None, self.elastic)
        found = self.named.come(name, asks, self.clock)
        if isinstance(found, Complete):
            racks = None if found.racks is None else Racks.of([found.racks.get(each, 0) for each in range(2)])
            made = self.jobs.create(int(workers), BSP(), scale=found.scale, racks=racks, elastic=self.elastic)
            self.named.made(made, name, found, self.clock)
            return self.named.come(name, asks, self.clock)
        return found

    def _named(self) -> None:
        """Processes a and b have places of a job that has been running for a while."""
        self._come("a")
        self._come("b")
        self._start("0")
        self._wait("10")

    def _silent(self, *seconds: str) -> None:
        """Of each worker, from worker 0 on."""
        self.silent = dict(enumerate(map(float, seconds)))


def pattern(expected: str) -> str:
    """A regular expression for what is expected."""

    def fields(policy: re.Match[str]) -> str:
        members = numbers(policy[2].replace("nobody", "").replace(" ", ""))
        return str(replace(parse(policy[1]).compile(members), precision=int(policy[3] or 32)))

    given = re.sub(r"\[(\S+) of ([^\]]+?)(?: in (\d+) bits)?\]", fields, expected)
    return re.escape(given).replace(re.escape("..."), ".*")


@pytest.mark.parametrize("name", PLAYS)
def test_jobs_play(name: str) -> None:
    play = Play()
    for line in PLAYS[name].splitlines():
        steps, arrow, expected = line.partition(" => ")
        *before, last = steps.split("; ")
        for step in before if arrow else [*before, last]:
            play.succeed(step)
        if arrow:
            found = play.step(last)
            assert re.fullmatch(pattern(expected), found), f"{line}\n{found}"


def test_number_of_retired_incarnations_is_bounded() -> None:
    play = Play()
    play.succeed("create 2 bsp")
    for incarnation in range(1, 5000):
        play.succeed(f"hello 0 incarnation={incarnation}")
    assert len(play.jobs[0].workers[0].retired) == 64


def test_processes_beyond_the_job_are_not_remembered() -> None:
    """Otherwise thousands of processes would each be compared with all others, and be listed in a long line."""
    play = Play()
    heard = {play.step(f"come p{number} workers=10 every={number}") for number in range(100)}
    assert len(play.named._gatherings["gpt"].arrivals) == 10
    assert max(map(len, heard)) < 200
    each = " and ".join(f"{number} in 1 process" for number in range(4))
    assert f"Conflict: the processes of job 'gpt' differ: every is {each} and others in 6 processes" in heard
    play.clock += STILL_THERE_S
    assert [play.step(f"come {process}")[:7] for process in "abc"] == ["waits: ", "place 1", "waits: "]


def test_named_jobs_forget_gatherings_of_gone_processes() -> None:
    play = Play()
    for number in range(50):
        play.succeed(f"come a name=job{number}")
        play.clock += STILL_THERE_S
    assert len(play.named._gatherings) <= 2


@given(st.lists(st.tuples(st.integers(1, 30), st.booleans()), max_size=30))
def test_slot_allocation_never_overlaps_or_wastes(requests: Iterable[tuple[int, bool]]) -> None:
    """Ranges are allocated and freed at random: they stay disjoint, and a request fails only without a gap that is long
    enough; the first such gap is taken."""
    taken: list[SlotRange] = []
    for count, free_one in requests:
        if free_one and taken:
            taken.pop(len(taken) // 2)
        gaps = free_ranges(100, taken)
        found = first_fit(100, taken, count)
        assert found == next((SlotRange(gap.first, count) for gap in gaps if gap.count >= count), None)
        if found is not None:
            taken.append(found)
        used = [slot for a in taken for slot in range(a.first, a.end)]
        assert len(used) == len(set(used))
        assert all(0 <= slot < 100 for slot in used)
        assert len(used) + sum(gap.count for gap in free_ranges(100, taken)) == 100
        assert gaps == sorted(gaps, key=lambda gap: gap.first)
