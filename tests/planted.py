"""Faults planted in the protocol's rules, one by one, to see whether random runs find them.

A planted fault is a line of the rules (tests/model.py), of the client or of the controller, written wrong. A hunt plays
random runs until one of them violates what must always hold. `python -m tests.planted` hunts for all planted faults,
and then for unknown ones for as long as one likes.
"""

from __future__ import annotations
import __future__

from serene.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import argparse
import inspect
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from serene.client import Client
from serene.client.protocol import Protocol
from serene.client.requests import Requests
from serene.controller.admission.frames import Answerer
from serene.controller.admission.proof import Proof
from serene.controller.jobs import joining
from serene.controller.jobs.job import Job
from serene.controller.jobs.jobs import Jobs
from serene.controller.switch import plan_entries, takeover
from serene.controller.switch.switch import Switch
from serene.controller.upkeep import Upkeep
from serene.errors import SereneError
from serene.experiments.correctness.virtual.checks import Violation
from serene.experiments.correctness.virtual.random_plans import random_plan
from serene.experiments.correctness.virtual.schedule import Schedule
from serene.experiments.shared.random_strategies import FAMILIES, alternating
from tests.model import Model
from tests.model_switch import ModelSwitch

OFTEN = 0.4  # the probability of rare events in a hunt


@dataclass(frozen=True)
class Line:
    """A piece of a function's source as it should be, and as the fault has it. owner: the class or module that the
    function belongs to."""

    owner: object
    function: str
    right: str
    wrong: str


@dataclass(frozen=True)
class Fault:
    """A fault to be found. runs: the number of random runs within which it has to be."""

    rule: str
    lines: tuple[Line, ...]
    runs: int = 100


def fault(rule: str, owner: object, function: str, right: str, wrong: str, runs: int = 100) -> Fault:
    return Fault(rule, (Line(owner, function, right, wrong),), runs)


FAULTS = (
    # -- the switch's rules
    fault("a member speaks in any incarnation", Model, "_request",
          "self.admitted.get(worker) != incarnation", "worker not in self.admitted"),
    fault("whoever is not admitted is welcome", Model, "hello",
          "self.admitted.get(worker) == incarnation", "worker in self.admitted"),
    fault("anybody speaks from anywhere", ModelSwitch, "_admitted", "match[:6] == place", "match[4:6] == place[4:]"),
    fault("a worker's addresses do from any port", ModelSwitch, "_admitted",
          "match[:6] == place", "match[1:6] == place[1:]"),
    fault("anybody speaks for the switch", ModelSwitch, "_impostor", "mac == _MAC or ip == _IP", "False"),
    fault("anybody has the switch's IP address", ModelSwitch, "_impostor", "mac == _MAC or ip == _IP", "mac == _MAC"),
    fault("a newer session finds the older one's sums", Model, "_request",
          "clear = self.slots[place].session != policy.session", "clear = not self.slots[place].session"),
    fault("repeats count", Model, "_request", " and seq > slot.seen.get(worker, 0)", ""),
    fault("what was overtaken counts again", Model, "_request",
          "seq > slot.seen.get(worker, 0)", "seq != slot.seen.get(worker, 0)"),
    fault("an epoch goes on with the rounds of the one before", Model, "_request",
          "slot.epoch, slot.base = policy.epoch, 0", "slot.epoch = policy.epoch"),
    fault("arrivals of an older epoch count", Model, "_request",
          "if current and fresh and counted:", "if fresh and counted:"),
    fault("a round is complete one worker early", Model, "_request",
          "arrivals == fields.quorum", "arrivals == max(fields.quorum - 1, 1)"),
    fault("workers that nobody waits for complete rounds", Model, "_request",
          "counted = bool(fields.sync_mask >> worker & 1)", "counted = fields.sync_mask > 0"),
    fault("a completed round lets everybody go two rounds further", Model, "_request",
          "slot.base = round_ + 1", "slot.base = round_ + 2"),
    fault("the bound is one too large", Model, "_request",
          "round_ < slot.base + fields.staleness\n", "round_ <= slot.base + fields.staleness\n"),
    fault("who is ahead is answered all the same", Model, "_request",
          "not counted or fields.staleness", "not counted or seq % 3 == 0 or fields.staleness"),
    fault("no snapshot when a round completes", Model, "_request",
          "if clear or rebase or complete:", "if clear or rebase:"),
    fault("snapshots are the latest sum", Model, "_request",
          "current and counted and fields.read_mode is ReadMode.SNAPSHOT", "False"),
    fault("a snapshot is said to hold what the sum holds", Model, "_request",
          "slot.snapshot_total if from_snapshot else slot.total", "slot.total"),
    # -- what a worker believes
    fault("an answer to another incarnation is ours", Requests, "is_answered_by",
          'int(header["incarnation"])', "self.incarnation"),
    fault("what was said in an earlier session is ours", Requests, "is_answered_by",
          'int(header["session"]) == self.session', "True", 600),
    fault("a NUDGE is an answer", Protocol, "receive",
          'self.exchange.due[headers["slot"][nudge]] = True', 'self.exchange.state[headers["slot"][nudge]] = ANSWERED'),
    fault("a release of another epoch is believed", Protocol, "receive",
          ' & (headers["epoch"] == self.epoch)', ""),
    fault("a release is believed whatever the base", Protocol, "receive", " & within_bound", ""),
    fault("an answer that announces an epoch is believed without an echo", Protocol, "receive",
          "(echo | release)", '(echo | release | (headers["epoch"] > self.epoch))'),
    fault("a pull believes any answer", Protocol, "receive",
          'echo = headers["seq"] == self.exchange.awaited[slots]',
          'echo = (headers["seq"] == self.exchange.awaited[slots]) | (headers["seq"] > 0) & self.exchange.pulling'),
    fault("reads go back", Protocol, "_accept", ".astype(np.int32) > 0", ".astype(np.int32) != 0", 200),
    fault("rounds go on in a new epoch", Protocol, "finish", "self.exchange.rounds[:] = 0", "pass"),
    fault("seqs restart", Protocol, "finish", "self.seq = max(self.seq, self.exchange.seen)", "self.seq = 0"),
    fault("who comes late has missed nothing", Client, "_begin_session",
          "not welcome.lost_sessions and welcome.epoch == 1", "True"),
    fault("who joins again forgets what it has read", Client, "_begin_session",
          "protocol.go_on_from(before)", "protocol.seq = before.seq"),
    fault("who joins again goes on without reading", Client, "_begin_session", "self._unread = True", "pass"),
    fault("who joins again is the same as before", Client, "join",
          "self._requests.begin_incarnation()", "pass"),
    # -- the controller's rules
    fault("a HELLO may be as old as it likes", Proof, "lacks", "said != self.number(job, worker, who)", "False"),
    fault("a number is good for ever", Proof, "number",
          "facts = (job.id, job.tag, job.session, job.lost_sessions, worker, held, who)",
          "facts = (job.id, worker, who)"),
    fault("a retired incarnation takes its place back", joining, "refusal",
          "endpoint.incarnation in worker.retired", "False", 400),
    fault("a worker of a job that is over takes a place in the next", Job, "has_had",
          "session in self.lost or session in (0, self.session) or session < self.lost_before", "True"),
    fault("a worker comes back without a new epoch", Jobs, "_next_epoch", "job.epochs_spent += 1", "pass"),
    fault("sessions go back with the clock", Jobs, "_plan_start", "max(self._last_session + 1, ", "max(1, "),
    fault("a new controller does not ask which session was the last", Jobs, "note_session",
          "max(self._last_session, session)", "self._last_session"),
    fault("a new controller counts epochs from one", takeover, "job_from", "job.epochs_spent = found.epoch", "pass"),
    fault("an evicted worker does not keep the job", Jobs, "plan_leave",
          "not (remaining or free)", "not remaining", 400),
    fault("who has left is waited for", Jobs, "plan_leave",
          "if job.state is JobState.RUNNING and gone:", "if False:"),
    fault("the process before stays a member", Switch, "readmit",
          "await self.write(plan_entries.no_member(plan.job, plan.worker, plan.old), missing_ok=True)", "pass", 400),
    # -- the order of its writes, and what it does when it begins
    fault("workers are admitted before there is a policy", Switch, "start",
          """        await self.put(plan_entries.policy_entry(plan.job, plan.policy))  # of an earlier job
        await self.write(plan_entries.members(plan))
""", """        await self.write(plan_entries.members(plan))
        await self.put(plan_entries.policy_entry(plan.job, plan.policy))
"""),
    fault("of what a controller has not finished the addresses stay", plan_entries, "removal",
          "for who in sorted(held.addresses)", "for who in held.members", 600),
    fault("what a controller has not finished stays", Upkeep, "_take_over",
          "await self.switch.remove(job_id)", "pass", 600),
    fault("nobody knows whom the controller means", Answerer, "_frame", "incarnation=to.incarnation", "incarnation=0"),
)  # fmt: skip


@contextmanager
def planted(line: Line) -> Iterator[None]:
    """Puts the fault into the function for the duration of the context."""
    original = inspect.getattr_static(line.owner, line.function)
    function = getattr(original, "__func__", None) or getattr(original, "fget", None) or original
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(line.right) != 1:
        raise SereneError(f"{line.function}: {line.right!r} is there {source.count(line.right)} times, expected once")
    code = compile(
        source.replace(line.right, line.wrong),
        inspect.getfile(function),
        "exec",
        flags=__future__.annotations.compiler_flag,
    )
    module = sys.modules[function.__module__]
    made: dict[str, object] = {}
    exec(code, vars(module), made)
    setattr(line.owner, line.function, made[line.function])
    users = [user for user in (sys.modules["serene.controller.upkeep"],) if line.owner is takeover]
    for user in users:
        setattr(user, line.function, made[line.function])
    try:
        yield
    finally:
        setattr(line.owner, line.function, original)
        for user in users:
            setattr(user, line.function, original)


@dataclass(frozen=True)
class Found:
    """How a fault was found: by which run (counted from 1), and with what message."""

    runs: int
    broken: str
    what: str


def play(switch: ModelSwitch, seed: int, often: float = OFTEN) -> Violation | None:
    plan = random_plan(seed, often)
    try:
        balance = Schedule(switch, plan, alternating(FAMILIES, seed, plan.workers)).run().balance
    except Violation as violation:
        if isinstance(violation.__cause__, (AttributeError, NameError)):
            raise  # the fault as it is planted is no program
        return violation
    if balance.lost or balance.repeated:
        return Violation("exactly once", f"{balance.lost} contributions lost, {balance.repeated} repeated")
    if switch.unread:
        return Violation("exactly once", f"{switch.unread} packets contributed what may have passed for repeats")
    return None


def hunt(first: int, runs: int, *faults: Line) -> Found | None:
    """Plays up to ``runs`` random runs with the faults planted; the first that violates a rule, None if none does."""
    switch = ModelSwitch()
    with ExitStack() as stack:
        for line in faults:
            stack.enter_context(planted(line))
        for number in range(runs):
            violation = play(switch, first + number)
            if violation is not None:
                return Found(number + 1, violation.broken, str(violation))
    return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description="Hunts for faults in the rules.")
    parser.add_argument("--runs", type=int, default=2000, help="of the right rules (default 2000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first run (default 0)")
    parser.add_argument("--only", default="", help="only planted faults whose rule has this in it")
    options = parser.parse_args()
    missed = 0
    for planned in FAULTS:
        if options.only in planned.rule:
            began = time.monotonic()
            found = hunt(options.first, 10 * planned.runs, *planned.lines)
            missed += found is None or found.runs > planned.runs
            what = f"run {found.runs} of {planned.runs}: {found.what[:90]}" if found else "NOT FOUND"
            print(f"{planned.rule}: {what} ({time.monotonic() - began:.1f} s)", flush=True)
    found = hunt(options.first, options.runs)
    print(f"the right rules, {options.runs} runs: {found.what if found else 'nothing'}")
    return int(missed > 0 or found is not None)


if __name__ == "__main__":
    raise SystemExit(ended(main))
