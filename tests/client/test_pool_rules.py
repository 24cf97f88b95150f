"""The rules of pools under random runs, with the protocol's rules in Python (tests/model.py) as the switch.

Random collectives, packets lost, repeated, late and out of order, and in some runs something that ends a pool. What a
collective returns is right to the bit, on every worker; all that is no such thing is an error on every worker; and
nobody is stuck. Nothing is found while the rules are right, and each rule that is broken on purpose is found.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from serene.client import plainpool
from serene.client.blocks import Layout
from serene.client.collective import Collective, Disagreement
from serene.client.plainpool import PlainPool
from serene.client.pool import Pool, PoolBroken
from serene.client.protocol import Protocol
from serene.client.requests import NoAnswer
from serene.faults import Faults, PacketFaults
from serene.strategy import ASP, BSP, SSP, Quorum, Strategy
from serene.wire import PRECISIONS
from tests.model import Model
from tests.model_switch import LANES, SLOTS, ModelSwitch
from tests.planted import Fault, fault, planted
from tests.support.numbers import expected, random_values, same, within_given, within_levels
from tests.support.pools import PoolRun, Stuck

COLLECTIVES = 4
HAPPENINGS = ("nothing", "disagreement", "swap", "eviction", "lost session", "death", "leaving", "precision")
TIMEOUT_S = 60.0
RUNS = 100


class Wrong(AssertionError):
    """Something that must not be."""


def random_faults(rng: random.Random) -> Faults:
    if rng.random() < 0.2:
        return Faults()
    level = rng.choice([0.02, 0.1, 0.2])
    late_s = rng.choice([0.001, 0.02, 0.5])
    return Faults(
        rng.randrange(2**32),
        (PacketFaults(loss=level, duplication=level, reordering=level, late_s=late_s, jitter_s=0.0005),),
    )


def moderate(values: np.ndarray) -> np.ndarray:
    """Without what float32 cannot hold the sum of."""
    small: np.ndarray = np.where(np.abs(values) < 1e37, values, np.float32(0))
    return small


class Play:
    """One random run; ``happened`` says what was tried in it."""

    def __init__(self, switch: ModelSwitch, seed: int) -> None:
        rng = random.Random(seed)
        self.switch = switch
        workers = rng.randint(1, 5)
        slots, faults = rng.randint(1, SLOTS), random_faults(rng)
        happening = rng.choice(HAPPENINGS)
        # One slot is no room for a new epoch: nobody could begin its next piece before all have read its last one.
        slots = max(slots, 2) if happening == "precision" else slots
        self.run = PoolRun(switch, workers, slots, faults, give_up_s=20.0)
        self.happened: Counter[str] = Counter()
        values = np.random.default_rng(seed)
        lengths = [
            rng.choice([0, 1, LANES - 1, LANES, LANES + 1, rng.randrange(40 * LANES)]) for _ in range(COLLECTIVES)
        ]
        self.given = [[random_values(values, length, LANES) for _ in range(workers)] for length in lengths]
        # Drawn apart from the rest, which has been what it is for a long time.
        self.unit = random.Random(f"unit {seed}").choice([None, None, -12, -140, 40])
        self.happened["a given scale"] += self.unit is not None
        self.results: dict[tuple[int, int], np.ndarray] = {}  # by collective and worker
        self.odd: int | None = None  # a worker that calls something else the second time
        self.over = False  # something has happened that ends the pool
        self.after: Callable[[int], None] = lambda number: None
        self.disturbed = happening not in ("nothing", "disagreement", "precision")
        self.happened[happening] += 1
        self.precisions: dict[tuple[int, int], int] = {}  # of the results
        when_s = 10 ** rng.uniform(-3.5, 0.5)
        victim = rng.randrange(workers)
        if happening == "precision":  # several times, so close together that one may overtake another
            self.given = [[moderate(vector) for vector in vectors] for vectors in self.given * 3]
            for number in range(rng.randint(1, 4)):
                bits = rng.choice(PRECISIONS)
                self.run.at(
                    when_s,
                    lambda number=number, bits=bits: self.run.put_policy(  # type: ignore[misc]
                        BSP(), 2 + number, precision=bits
                    ),
                )
                when_s += 10 ** rng.uniform(-3.5, 0.5)
        if happening == "disagreement":
            self.odd = victim if workers > 1 else None
        elif happening == "swap":
            # Of one worker, a quorum is BSP.
            chosen: Strategy = rng.choice([SSP(2), ASP(), Quorum(workers - 1) if workers > 1 else ASP()])
            self.run.at(when_s, lambda: self._swap(chosen, range(workers)))
        elif happening == "eviction":
            others = [worker for worker in range(workers) if worker != victim]
            self.run.at(when_s, lambda: self._swap(BSP() if others else ASP(), others))
        elif happening == "lost session":
            self.run.at(when_s, self._lose_session)
        elif happening == "death":
            self.run.at(when_s, lambda: self.run.kill(victim))
        elif happening == "leaving":  # after its last collective, while others may still be in it
            self.after = lambda worker: self._left(worker, victim)

    def _swap(self, strategy: Strategy, members: Sequence[int]) -> None:
        self.run.put_policy(strategy, 2, members)
        self.over = True

    def _lose_session(self) -> None:
        self.run.lose_session()
        self.over = True

    def _left(self, worker: int, victim: int) -> None:
        if worker == victim:
            members = [other for other in range(self.run.workers) if other != victim]
            self.run.put_policy(BSP() if members else ASP(), 2, members)

    def _live(self, worker: int, pool: Pool) -> None:
        late = 0
        for number, vectors in enumerate(self.given):
            values, late = vectors[worker].copy(), late + self.over
            odd = number == 1 and worker == self.odd
            self.precisions[number, worker] = pool.precision
            try:
                pool.all_reduce(values, b"max" if odd else b"sum", TIMEOUT_S, bits=pool.precision, unit=self.unit)
            except Disagreement:
                if number != 1 or self.odd is None or not same(values, vectors[worker]):
                    raise
                self.happened["disagreements seen"] += 1
                continue
            if number == 1 and self.odd is not None:
                raise Wrong(f"worker {worker} does not see that worker {self.odd} calls something else")
            self.results[number, worker] = values
            if late > 1:  # one may have been so short that it met no answer of another epoch
                raise Wrong(f"worker {worker} goes on after what has happened")
        self.after(worker)

    def play(self) -> None:
        """Raises whatever is wrong."""
        before = dict(self.switch.contributions(0))
        self.run.play(self._live)
        for (number, worker), values in self.results.items():
            bits = self.precisions[number, worker]
            if bits != 32:
                self.happened[f"{bits} bits"] += 1
            if bits != 32 or self.unit is not None:
                right = all(same(values, self.results.get((number, other), values)) for other in range(worker))
            if self.unit is not None:
                right &= within_given(values, self.given[number], bits, self.unit)
            elif bits != 32:
                right &= within_levels(values, self.given[number], LANES, bits)
            else:
                right = same(values, expected(self.given[number], LANES))
            if not right:
                raise Wrong(f"worker {worker} has another sum of collective {number}")
        if not self.disturbed:
            for worker, pool in enumerate(self.run.pools):
                counted = self.switch.contributions(0).get(worker, 0) - before.get(worker, 0)
                if counted != pool.telemetry()["contributions_sent"]:
                    raise Wrong(f"worker {worker} has sent other contributions than the {counted} that are counted")
        for worker, error in self.run.errors.items():
            if not self.disturbed or not isinstance(error, (PoolBroken, NoAnswer)):
                raise Wrong(f"worker {worker}: {error!r}") from error
            self.happened[type(error).__name__] += 1
        if self.happened["leaving"] and self.run.errors:
            raise Wrong(f"nobody needed the one that left, but {self.run.errors}")


def hunt(runs: int, *faults: Fault) -> str | None:
    """What the first run says that finds something."""
    switch = ModelSwitch()
    for seed in range(runs):
        try:
            Play(switch, seed).play()
        except (Wrong, Stuck, RuntimeError) as found:
            return f"run {seed}: {found}"
    return None


def test_the_right_rules() -> None:
    """And everything that may happen does, or this would prove little."""
    switch, happened = ModelSwitch(), Counter[str]()
    for seed in range(RUNS):
        played = Play(switch, seed)
        played.play()
        happened.update(played.happened)
    assert {*HAPPENINGS, "disagreements seen", "16 bits", "8 bits", "a given scale", "PoolBroken", "NoAnswer"} == set(
        happened
    )


EARLY = fault("a round is complete one worker early", Model, "_request",
              "arrivals == fields.quorum", "arrivals == max(fields.quorum - 1, 1)")  # fmt: skip
FAULTS = (
    # -- slots in turn
    fault("a slot is used again before its answer", PlainPool, "_begin", " not in self._under_way:", " is not None:"),
    fault("a slot is used again before all have read it", plainpool, "most_under_way", "slots // 2", "slots"),
    fault("slots go in another order on each worker", PlainPool, "_begin",
          "slot = self._begun % self._slots", "slot = (self._begun * (1 + self._client._worker)) % self._slots"),
    fault("a release of another round is believed", Protocol, "receive", " & within_bound", ""),
    fault("the answer to another round is believed", Protocol, "receive",
          'echo = headers["seq"] == ', 'echo = headers["seq"] <= '),
    fault("all rounds have one seq", Protocol, "begin_slots", "self.exchange.awaited[slots] + np.uint32(1)", "1"),
    fault("the previous read is not kept", Protocol, "finish_slots",
          "self.held_values[slots] = self.exchange.new_values[slots]", "pass"),
    fault("rounds do not go on", Protocol, "_finish", "self.exchange.rounds[slots] += 1", "pass"),
    # -- when an epoch with another format begins
    fault("seqs begin anew with an epoch", Protocol, "begin_slots",
          "self.exchange.awaited[slots] + np.uint32(1)", "self.exchange.rounds[slots] + np.uint32(1)"),
    fault("rounds go on where an epoch begins", Protocol, "begin_epoch", "self.exchange.rounds[:] = 0", "pass"),
    fault("what lacks contributions is read", Protocol, "receive", "if self.whole:", "if False:"),
    fault("each worker goes over when it hears of it", Pool, "all_reduce",
          "(engine.votes == vote * np.uint32(self._client.membership.workers)).all()", "True"),
    fault("the switch's epoch is begun in the middle of a collective", Protocol, "finish_slots",
          "return self._finish(", "self.epoch = self.exchange.announced or self.epoch; return self._finish("),
    fault("an epoch is adopted, its format is not", Pool, "all_reduce",
          "self._format = voted", "self._format = Format(voted.epoch, self._format.precision)"),
    fault("a worker says what it has agreed on, not what it has heard", Pool, "all_reduce",
          "vote_for(self._heard.epoch, self._heard.precision)", "vote_for(self._format.epoch, 32)"),
    # -- when it is not a pool any more
    fault("who has only answers to wait for does not get them", Pool, "_exchange",
          "if (protocol.exchange.state == UNSENT).any():", "if True:", 400),
    fault("a collective never gives up", Pool, "_exchange",
          "if not over and self._clock() > until and engine.slots_under_way:", "if False:"),
    # -- numbers
    fault("a counter is too narrow and carries", Layout, "counter_bits",
          "self.workers.bit_length()", "max((self.workers - 1).bit_length(), 1)"),
    fault("classes are one power of two too narrow", Layout, "top", "- 127", "- 128"),
    fault("the sum is one bit too long", Layout, "integer_bits", "31 -", "32 -"),
    fault("a block goes by the lowest class that counts", Layout, "classes", "max(", "min("),
    fault("scales are this worker's own", Collective, "_learn",
          "self.layout.classes(counters)", "self.layout.classes(self.layout.count(self._of_group(group)))"),
    fault("nobody looks at signatures", Collective, "_learn", "!= self.signature *", "< 0 *"),
    fault("infinities are counted after the sums are in their place", Collective, "_of_block",
          "if not_finite:", "if not_finite and not self.layout.count(self._of_piece(index)).any():"),
    fault("sums wipe infinities out", Collective, "answer", "elif index not in self._without_specials:", "elif False:"),
    # -- the switch
    fault("repeats count", Model, "_request", " and seq > slot.seen.get(worker, 0)", ""),
    EARLY,
    fault("snapshots are the latest sum", Model, "_request",
          "current and counted and fields.read_mode is ReadMode.SNAPSHOT", "False"),
)  # fmt: skip


@pytest.mark.parametrize("broken", FAULTS, ids=lambda broken: broken.rule)
def test_a_broken_rule_is_found(broken: Fault) -> None:
    (line,) = broken.lines
    with planted(line):
        assert hunt(broken.runs) is not None


def test_a_read_that_lacks_contributions_is_no_sum() -> None:
    """Where the switch itself is wrong, and in no other epoch that could be the reason: an error, not another sum."""
    switch, errors = ModelSwitch(), 0
    with planted(EARLY.lines[0]):
        for seed in range(20):
            played = Play(switch, seed)
            try:
                played.play()
            except Wrong as found:
                assert "another sum" not in str(found)
                errors += "did not give every worker's contribution" in str(found)
    assert errors
