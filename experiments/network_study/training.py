"""Simulates many iterations of training on a large network, under any strategy.

Exchanges are flows, one for each worker. All flows of a leaf's workers share the same links, so that a leaf is one
variable of the max-min solver. The barrier is the switch's (docs/protocol.md), for whole rounds instead of slots: a
worker that has finished c rounds goes on when c <= base + staleness bound; base: how many rounds a quorum has finished.

``servers``, ``servers-packed``  workers push to distributed or packed parameter servers, wait for the barrier, and pull
``switch``   leaf and upper switches add up; values stream out and back over the worker's own link, which it shares with
             nobody, and a worker that waits has its result when the contribution that it waited for has been sent
others       the methods with ``lock_step``: an iteration takes the slowest worker's compute time, and the exchange
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from serene.errors import SereneError, choices
from serene.experiments.network_study.exchange import SERVER_SHARE, BadMethod, Exchange
from serene.experiments.network_study.flows import solver
from serene.experiments.network_study.flows.clos import Clos, Ints
from serene.experiments.network_study.flows.solver import Model, rates
from serene.experiments.network_study.methods import METHODS, SYNCHRONOUS
from serene.strategy import Strategy
from serene.workers.stragglers import Straggler

SERVERS, PACKED, SWITCH = "servers", "servers-packed", "switch"
BY_SERVERS = (SERVERS, PACKED)
EXCHANGES = (*BY_SERVERS, SWITCH, *SYNCHRONOUS)
FLOAT_SLACK = 1e-9  # rounding error of a flow's bytes, relative
COMPUTING, SENDING, WAITING, READING = range(4)  # a worker's states


@dataclass(frozen=True)
class Training:
    """A training run. ``how``: one of EXCHANGES. ``compute_s``: mean compute time of an iteration, which varies by a
    lognormal factor with mean 1 and sigma ``jitter``. ``iterations``: the run ends when workers have done so many on
    average. Raises SereneError."""

    exchange: Exchange
    how: str
    strategy: Strategy
    straggler: Straggler
    compute_s: float = 0.1
    jitter: float = 0.05
    iterations: int = 40
    seed: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.compute_s < np.inf or not 0 <= self.jitter < np.inf or self.iterations < 1:
            raise SereneError(
                f"computing {self.compute_s:g} s, jitter {self.jitter:g}, {self.iterations} iterations; "
                "expected > 0, >= 0, >= 1"
            )


@dataclass(frozen=True)
class Outcome:
    """What came of a run. ``seconds``: that it took. ``computing``, ``waiting``, ``network``: shares of all workers'
    time together, 0 to 1. ``ahead_mean``, ``ahead_max``: rounds that a worker was ahead of the slowest when it went
    on. ``lateness``: of its gradients, see `lateness`."""

    workers: int
    seconds: float
    rounds_per_s: float  # of an average worker
    computing: float
    waiting: float
    network: float
    ahead_mean: float
    ahead_max: int
    lateness: float


def lateness(contributions: Sequence[tuple[int, int]], workers: int) -> float:
    """By how many rounds gradients are late, beyond those of BSP, in the mean: 0 is BSP; without a barrier it is 1,
    whoever is slow, because each worker contributes once while the others contribute so much as one round.

    contributions: in the order in which they are added up, (worker, how many its sender had read). One that lacks m
    others is late by m / n of n workers' rounds, of which BSP's have (n - 1) / 2n, as all of a round read the same sum.
    """
    if workers < 2 or not contributions:
        return 0.0
    missed = np.mean([place - read for place, (_, read) in enumerate(contributions)]) / workers
    bsp = (workers - 1) / (2 * workers)
    return float(missed - bsp) / bsp


def train(training: Training, model: Model) -> Outcome:
    """Simulates a run. Raises BadMethod for an exchange that does not exist, or one in lock step under another strategy
    than BSP."""
    if training.how not in EXCHANGES:
        raise BadMethod(f"no way to exchange {training.how!r}; expected {choices(EXCHANGES)}")
    if training.how in SYNCHRONOUS:
        return _lock_step(training, model)
    run = _Run(training, model)
    run.play()
    return run.outcome()


def simulated(training: Training, model: Model) -> list[tuple[int, int]]:
    """The contributions of a run, as `lateness` takes them. Raises BadMethod for an exchange in lock step."""
    if training.how in SYNCHRONOUS:
        raise BadMethod(f"{training.how} supports BSP only; expected {', '.join((*BY_SERVERS, SWITCH))}")
    run = _Run(training, model)
    run.play()
    return run.contributions


class _Compute:
    """How long a worker computes in an iteration, in seconds. The random numbers are the same whatever the strategy."""

    def __init__(self, training: Training) -> None:
        self._of = training
        self._random = np.random.default_rng((training.seed, 0xC0))
        self._drawn: list[np.ndarray] = []

    def __call__(self, worker: int, iteration: int, workers: int) -> float:
        of = self._of
        while len(self._drawn) < iteration:
            self._drawn.append(self._random.lognormal(-(of.jitter**2) / 2, of.jitter, workers))
        base = of.compute_s * float(self._drawn[iteration - 1][worker])
        return base + of.straggler.delay(worker, iteration, of.compute_s, of.seed)


def _lock_step(training: Training, model: Model) -> Outcome:
    if str(training.strategy) != "BSP":
        raise BadMethod(
            f"{training.how} supports BSP only, not {training.strategy}; expected BSP, or "
            f"{', '.join((*BY_SERVERS, SWITCH))}"
        )
    workers = training.exchange.network.hosts
    exchange_s = solver.run(training.exchange.network, METHODS[training.how].steps(training.exchange), model)
    compute = _Compute(training)
    times = np.array(
        [[compute(worker, turn, workers) for worker in range(workers)] for turn in range(1, training.iterations + 1)]
    )
    slowest = times.max(axis=1)
    total = float(slowest.sum() + training.iterations * exchange_s)
    computing = float(times.mean(axis=1).sum()) / total
    waiting = float((slowest - times.mean(axis=1)).sum()) / total
    return Outcome(
        workers, total, training.iterations / total, computing, waiting, 1 - computing - waiting, 0.0, 0, 0.0
    )


class Bundles:
    """All workers' flows in one direction, to the servers or from them, over the links of leaves, pods and servers.

    packed: whether servers fill the first leaves, or are in all of them alike.
    """

    def __init__(self, network: Clos, model: Model, servers: int, *, packed: bool = False) -> None:
        speed = model.bandwidth_factor * network.bandwidth
        leaf = np.arange(network.leaves)
        # How many servers each leaf has. A flow has as much to do with each server as with every other.
        here = np.bincount(np.arange(servers) // network.half, minlength=leaf.size) if packed else leaf * 0 + 1
        here = here / here.sum()
        capacity = [np.full(network.leaves, (network.up if network.layers == 2 else network.half) * speed)]
        links, shares = [leaf], [1 - here]
        group, of_group = leaf, here
        if network.layers == 3:
            group, of_group = leaf // network.half, here.reshape(network.groups, -1).sum(axis=1)
            capacity.append(np.full(network.groups, network.half * network.up * speed))
            links.append(network.leaves + group)
            shares.append(1 - of_group[group])
        for number in np.flatnonzero(of_group) if packed else ():  # what goes into the servers' groups from the others
            links.append(np.full(network.leaves, sum(part.size for part in capacity)))
            capacity.append(np.array([(network.up if network.layers == 2 else network.half * network.up) * speed]))
            shares.append(np.where(group == number, 0.0, of_group[number]))
        links.append(np.full(network.leaves, sum(part.size for part in capacity)))
        shares.append(np.ones(network.leaves))
        self._capacity = np.concatenate([*capacity, [servers * speed]])
        self._links, self._shares = np.stack(links), np.stack(shares)
        self._users = np.zeros((self._capacity.size, network.leaves), dtype=bool)  # [link, leaf]
        np.logical_or.at(self._users, (self._links, leaf[None, :]), self._shares > 0)
        self._speed = speed
        # The flows of a leaf have the same rate. So a flow ends when each flow of its leaf has carried, since the start
        # of the run, its size more than when it began.
        self._carried = np.zeros(network.leaves)
        self._count = np.zeros(network.leaves, dtype=np.int64)
        self._ends: list[list[tuple[float, int]]] = [[] for _ in range(network.leaves)]
        self._first = np.full(network.leaves, np.inf)
        self._rate = np.zeros(network.leaves)
        self._stale = False

    def add(self, leaf: int, worker: int, size: float) -> None:
        """Begins a worker's flow of so many bytes."""
        heapq.heappush(self._ends[leaf], (float(self._carried[leaf]) + size, worker))
        self._first[leaf] = self._ends[leaf][0][0]
        self._count[leaf] += 1
        self._stale = True

    def next_in(self) -> float:
        """Seconds until the next flow ends; infinite if there is none."""
        if self._stale:
            self._solve()
        busy = self._count > 0
        if not busy.any():
            return np.inf
        return float(np.maximum((self._first[busy] - self._carried[busy]) / self._rate[busy], 0.0).min())

    def advance(self, seconds: float) -> list[int]:
        """Lets so many seconds pass; returns the workers whose flows have ended."""
        self._carried += self._rate * seconds
        slack = FLOAT_SLACK * np.maximum(self._carried, 1.0)
        done: list[int] = []
        for leaf in np.flatnonzero(self._first <= self._carried + slack).tolist():
            ends = self._ends[leaf]
            while ends and ends[0][0] <= self._carried[leaf] + slack[leaf]:
                done.append(heapq.heappop(ends)[1])
                self._count[leaf] -= 1
            self._first[leaf] = ends[0][0] if ends else np.inf
            self._stale = True
        return done

    def _solve(self) -> None:
        load = np.bincount(self._links.ravel(), (self._shares * self._count).ravel(), minlength=self._capacity.size)
        first = int((load / self._capacity).argmax())
        level = self._capacity[first] / load[first] if load[first] else np.inf
        busy = np.flatnonzero(self._count)
        self._rate[:] = 0.0
        if level >= self._speed or self._users[first, busy].all():
            # All flows stop growing at once: at their own links' rate, or when a link is full that all of them use.
            self._rate[busy] = min(level, self._speed)
        elif busy.size:
            layers = self._links.shape[0]
            self._rate[busy] = rates(
                self._capacity,
                np.tile(np.arange(busy.size), layers),
                self._links[:, busy].ravel(),
                np.ravel(self._shares[:, busy] * self._count[busy].astype(np.float64)),
                np.ones(busy.size),
                np.full(busy.size, self._speed),
            )
        self._stale = False


@dataclass
class _Run:
    """A run's state. ``state``: of each worker; ``since``: when it began; ``spent``: seconds of all workers, by
    state."""

    training: Training
    model: Model
    now: float = 0.0
    _events: list[tuple[float, int]] = field(
        default_factory=list
    )  # (when, worker): it has computed, or sent to switches

    def __post_init__(self) -> None:
        exchange, how = self.training.exchange, self.training.how
        network = exchange.network
        servers, packed = network.hosts // SERVER_SHARE if how in BY_SERVERS else 0, how == PACKED
        self.workers = network.hosts - servers
        # Distributed servers are in all leaves alike, and so are the workers; else workers are in the other leaves.
        leaves = np.arange(self.workers) * network.leaves // self.workers
        self.leaf: Ints = (np.arange(self.workers) + servers) // network.half if packed else leaves
        self.push = Bundles(network, self.model, servers, packed=packed) if servers else None
        self.pull = Bundles(network, self.model, servers, packed=packed) if servers else None
        links = network.longest if network.leaves > 1 else 2
        wire = exchange.size * exchange.switch.overhead * (1 + self.model.cross_traffic)
        speed = min(self.model.bandwidth_factor * network.bandwidth, exchange.switch.limit(network, links, links - 1))
        self.stream_s = wire / speed + exchange.switch.round_trip(network, links, links - 1)
        policy = self.training.strategy.compile(range(self.workers))
        self.counted = np.array([bool(policy.sync_mask >> worker & 1) for worker in range(self.workers)])
        self.staleness, self.quorum = policy.staleness, policy.quorum
        self.finished = np.zeros(self.workers, dtype=np.int64)  # rounds
        self.reached = np.zeros(0, dtype=np.int64)  # [c]: how many counted workers have finished c + 1 rounds
        self.base = 0
        self.waiting_for: dict[int, list[int]] = {}  # the base that they wait for -> workers
        self.state = np.full(self.workers, COMPUTING)
        self.since = np.zeros(self.workers)
        self.spent = np.zeros(4)
        self.went: list[tuple[int, float, int]] = []  # (worker, when it went on, rounds ahead of the slowest)
        self.contributions: list[tuple[int, int]] = []  # as `lateness` takes them
        self.read = [0] * self.workers  # how many contributions each worker has read
        self.compute = _Compute(self.training)
        # Rounds that all workers together have done, with reading. `_compute` counts one whenever it begins the next;
        # that it also begins each worker's first is made up for here.
        self.done = -self.workers

    def play(self) -> None:
        for worker in range(self.workers):
            self._compute(worker)
        wanted = self.training.iterations * self.workers
        while self.done < wanted:
            until = self._events[0][0] - self.now if self._events else np.inf
            bundles = [bundle for bundle in (self.push, self.pull) if bundle is not None]
            pause = min([until, *(bundle.next_in() for bundle in bundles)])
            ended = [bundle.advance(pause) for bundle in bundles]
            self.now += pause
            for worker in ended[0] if ended else []:
                self._sent(worker)
            for worker in ended[1] if ended else []:
                self._compute(worker)
            while self._events and self._events[0][0] <= self.now:
                _, worker = heapq.heappop(self._events)
                self._computed(worker) if self.state[worker] == COMPUTING else self._sent(worker)

    def _enter(self, worker: int, state: int) -> None:
        self.spent[self.state[worker]] += self.now - self.since[worker]
        self.state[worker], self.since[worker] = state, self.now

    def _compute(self, worker: int) -> None:
        self.done += 1
        self._enter(worker, COMPUTING)
        seconds = self.compute(worker, int(self.finished[worker]) + 1, self.workers)
        heapq.heappush(self._events, (self.now + seconds, worker))

    def _computed(self, worker: int) -> None:
        self._enter(worker, SENDING)
        if self.push is None:
            heapq.heappush(self._events, (self.now + self.stream_s, worker))
        else:
            self.push.add(int(self.leaf[worker]), worker, self.training.exchange.size)

    def _sent(self, worker: int) -> None:
        self.contributions.append((worker, self.read[worker]))
        self.finished[worker] += 1
        done = int(self.finished[worker])
        self._enter(worker, WAITING)
        if self.counted[worker]:
            if self.reached.size < done:
                self.reached = np.append(self.reached, 0)
            self.reached[done - 1] += 1
        if self.counted[worker] and done > self.base + self.staleness:
            self.waiting_for.setdefault(done - self.staleness, []).append(worker)
        else:
            self._go_on(worker)
        while self.base < self.reached.size and self.reached[self.base] >= self.quorum > 0:
            self.base += 1
            for released in self.waiting_for.pop(self.base, ()):
                self._go_on(released)

    def _go_on(self, worker: int) -> None:
        self.read[worker] = len(self.contributions)
        self.went.append((worker, self.now, int(self.finished[worker] - self.finished.min())))
        if self.pull is None:
            self._compute(worker)
        else:
            self._enter(worker, READING)
            self.pull.add(int(self.leaf[worker]), worker, self.training.exchange.size)

    def outcome(self) -> Outcome:
        for worker in range(self.workers):
            self._enter(worker, int(self.state[worker]))
        computing, sending, waiting, reading = (self.spent / self.spent.sum()).tolist()
        ahead = [rounds for _, _, rounds in self.went]
        return Outcome(
            self.workers, self.now, self.done / self.workers / self.now, computing, waiting,
            sending + reading, float(np.mean(ahead)), max(ahead), lateness(self.contributions, self.workers),
        )  # fmt: skip
