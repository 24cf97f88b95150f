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

from serene.client.allreduce.collective import Disagreement
from serene.client.allreduce.pool import Pool, PoolBroken
from serene.client.session.requests import NoAnswer
from serene.faults import Faults, PacketFaults
from serene.strategy import ASP, BSP, SSP, Quorum, Strategy
from serene.wire import PRECISIONS
from tests.model import Model
from tests.model_switch import LANES, SLOTS, ModelSwitch
from tests.planted import Line, Play, every_fault_is_found, faults, planted
from tests.support.numbers import random_values, right, same
from tests.support.pools import PoolRun, Stuck

COLLECTIVES = 4
HAPPENINGS = ("nothing", "disagreement", "swap", "eviction", "lost session", "death", "leaving", "precision")
TIMEOUT_S = 60.0
TOO_LATE_S = 1000.0  # more than all collectives of a run may take
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
    """Removes values whose sum exceeds float32."""
    small: np.ndarray = np.where(np.abs(values) < 1e37, values, np.float32(0))
    return small


class Played:
    """One random run; ``happened`` lists its events."""

    def __init__(self, switch: ModelSwitch, seed: int) -> None:
        rng = random.Random(seed)
        self.switch = switch
        workers = rng.randint(1, 5)
        slots, faults = rng.randint(1, SLOTS), random_faults(rng)
        happening = rng.choice(HAPPENINGS)
        # One slot is no room for a new epoch: nobody could begin its next piece before all have read its last one.
        slots = max(slots, 2) if happening == "precision" else slots
        self.run = PoolRun(switch, workers, slots, faults, give_up_s=20.0, too_late_s=TOO_LATE_S)
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
                raise Wrong(f"worker {worker} continues after what has happened")
        self.after(worker)

    def play(self) -> None:
        """Raises whatever is wrong."""
        before = dict(self.switch.contributions(0))
        self.run.play(self._live)
        for (number, worker), values in self.results.items():
            bits = self.precisions[number, worker]
            if bits != 32:
                self.happened[f"{bits} bits"] += 1
            alike = all(same(values, self.results.get((number, other), values)) for other in range(worker))
            if not alike or not right(values, self.given[number], LANES, bits, self.unit):
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


def runs() -> Play:
    switch = ModelSwitch()

    def play(seed: int) -> str | None:
        try:
            Played(switch, seed).play()
        except (Wrong, Stuck, RuntimeError) as found:
            return str(found)
        return None

    return play


def test_unmodified_pool_rules_pass_all_random_runs() -> None:
    """Every kind of event occurs in them; otherwise passing would prove little."""
    switch, happened = ModelSwitch(), Counter[str]()
    for seed in range(RUNS):
        played = Played(switch, seed)
        played.play()
        happened.update(played.happened)
    assert {*HAPPENINGS, "disagreements seen", "16 bits", "8 bits", "a given scale", "PoolBroken", "NoAnswer"} == set(
        happened
    )


test_random_runs_find_each_planted_fault = every_fault_is_found(runs, faults("pools"))
EARLY = Line(Model, "_request", "arrivals == fields.quorum", "arrivals == max(fields.quorum - 1, 1)")


def test_read_without_all_contributions_raises_an_error() -> None:
    """The switch itself is wrong here, and no other epoch explains the read: an error, not a wrong sum."""
    switch, errors = ModelSwitch(), 0
    with planted(EARLY):
        for seed in range(20):
            played = Played(switch, seed)
            try:
                played.play()
            except Wrong as found:
                assert "another sum" not in str(found)
                errors += "did not give every worker's contribution" in str(found)
    assert errors
