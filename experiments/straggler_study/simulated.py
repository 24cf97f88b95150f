"""The simulated engine: the real protocol, P4 program and gradients, in virtual time.

SimPy keeps the time. Each worker runs ``serene.client.Protocol``, as over sockets, and its packets go through the
compiled program in this process. Time passes only for what the cell describes: the compute time of an iteration with
the straggler's delay, and packets on their way (``Network``). Everything follows from the cell.

Packets travel in groups of ``GROUP``, each packet with its own time. A switch processes a group when the last packet of
it has arrived, so that packets of two workers may be reordered by less than the time of a group. That holds between the
switches of a tree, too.

A packet may stand for many (``Cell.stands_for``). Then it takes their time on each link, but the links work at the same
time, as they do for the many; and what is sent again takes the time of one, since a worker that hears nothing sends a
few packets again, not all (``PROBES``).
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import simpy

from serene.client.protocol.protocol import Membership, Protocol
from serene.client.session.agreement import Agreement
from serene.client.session.reports import REPORT_EVERY_S
from serene.controller.automatic import (
    Automatic,
    BadAutomatic,
    Decision,
    Observation,
    Observer,
    automatic_parts,
    checked,
    in_words,
    terms,
)
from serene.controller.automatic.base import DECISION_TIMEOUT_S
from serene.controller.automatic.loading import fresh_modules
from serene.controller.switch.silence import Silence, spoken
from serene.errors import SereneError, choices, one_line
from serene.experiments.straggler_study.cell import LANES, Cell, automatic, first_strategy
from serene.experiments.straggler_study.dataplane import FIRST_EPOCH, SESSION, DataPlane, OneSwitch, Port, Tree
from serene.experiments.straggler_study.learners import Learner, learner
from serene.experiments.straggler_study.measures import SMOOTHING
from serene.experiments.straggler_study.trace import STEP, Swap, Trace
from serene.fixedpoint import FixedPoint
from serene.process.interrupts import Interrupted, time_limit
from serene.program import Program
from serene.racks import Racks
from serene.report import Report
from serene.strategy import Strategy, shrunk
from serene.wire import ENCAPSULATION_BYTES, headers_of
from serene.workers import architectures, data
from serene.workers.stragglers import parse

GROUP = 64  # packets in one event of SimPy, at most
LONGEST_ERROR = 500  # characters
LOAD_S = 120.0  # for a strategy's file to load, which was in time before the study began: now other cells run, too
SWAP_S = 1e-3  # what a policy's write takes, as serenectl reports it
SPOKE = ("contributions", "repeats", "blocked")  # counters that grow when the switch gets a worker's PUSH

Packets = tuple[np.ndarray, np.ndarray]  # frames: uint8[n, bytes]; float64[n], when each is there
Process = Generator[simpy.Event, object, None]


class Stuck(SereneError):
    """Workers wait, but no event is due any more: a fault of the protocol."""


@dataclass(frozen=True)
class Link:
    """One direction of a link. latency_s: in addition to the queue's time."""

    queue: Queue
    latency_s: float

    def carry(self, ready: np.ndarray, parts: np.ndarray | float = 1.0) -> np.ndarray:
        """When packets arrive, float64[n], that are sent at these times, float64[n], ascending. parts: as for
        `Queue.serve`."""
        return self.queue.serve(ready, parts) + self.latency_s


@dataclass
class Worker:
    """The state of a worker. up: its link to the switch. inbox: payloads that have arrived, uint8[n, bytes] each.
    arrived: the event that it waits for. done: iterations. sendings: how often it sent something."""

    id: int
    protocol: Protocol
    learner: Learner
    up: Link
    reports: Reports
    inbox: list[np.ndarray] = field(default_factory=list)
    arrived: simpy.Event | None = None
    done: int = 0
    sendings: int = 0
    left: bool = False


class Simulation:
    """A cell's run in virtual time. group: packets in one event. Raises as `Cell.check`."""

    def __init__(self, cell: Cell, *, group: int = GROUP) -> None:
        cell.check(LOAD_S)
        self.cell = cell
        self._group = group
        self._env = simpy.Environment()
        self._straggler = parse(cell.straggler)
        self._mean_s = cell.compute_ms / 1e3
        learners = [learner(cell, worker) for worker in range(cell.workers)]
        size = learners[0].size
        self._epoch = FIRST_EPOCH
        self._strategy = first_strategy(cell.strategy)
        self.plane = _plane(cell, size, self._strategy)
        slots, lanes = self.plane.slots, self.plane.program.lanes
        # How many packets of 320 values each packet of this program stands for.
        self._weight = -(-max(size, cell.stands_for) // LANES) / slots
        network, racks = cell.network, cell.racks
        worker_s = self._weight / network.worker_pps if network.worker_pps else 0.0
        uplink_s = self._weight / racks.uplink_pps if racks is not None and racks.uplink_pps else 0.0
        slowest_s, root = max(worker_s, uplink_s), len(self.plane.switches) - 1
        self._switches = [self._queue(network.switch_pps, worker_s) for _ in self.plane.switches]
        self._links = {
            port: self._link(network.worker_pps, network.latency_us, slowest_s)
            if isinstance(end, int) or racks is None
            else self._link(racks.uplink_pps, racks.uplink_latency_us, slowest_s if port[0] == root else worker_s)
            for port, end in self.plane.ends.items()
        }
        self._fixed = FixedPoint.of(cell.workers)
        limit = int(self._fixed.limit * self._fixed.scale)
        membership = Membership(SESSION, FIRST_EPOCH, size, slots, lanes, self._fixed.scale, limit, cell.workers)
        self.workers = [
            Worker(
                worker, Protocol(0, self.plane.numbers[worker], membership, self.plane.incarnation), each,
                self._link(network.worker_pps, network.latency_us), Reports(cell.momentum),
            )
            for worker, each in enumerate(learners)
        ]  # fmt: skip
        self._size = size
        self._swaps = [Swap(0.0, str(self._strategy))]
        self._rows: list[tuple[float | int, ...]] = []
        self._recent = np.zeros(
            (cell.workers, SMOOTHING)
        )  # each worker's latest accuracies, as `measures.curve` has them
        self._reached = self._env.event()
        self._at_risk = 0
        self._evicted: frozenset[int] = frozenset()
        self._swapped_at = 0.0
        chosen = automatic(cell.strategy)
        self._running = None if chosen is None else RunningStrategy(cell.strategy, chosen, cell.workers)

    def _queue(self, pps: float, before_s: float | None = None) -> Queue:
        """before_s: how long the slowest link before took for all that a packet stands for; None: there is none."""
        if not pps:
            return Queue(0.0)
        whole = self._weight / pps
        # The first of the many arrives by so much earlier than the last.
        ahead_s = None if before_s is None else before_s * (1 - 1 / self._weight)
        return Queue(whole, None if ahead_s is None else max(whole - ahead_s, 1 / pps))

    def _link(self, pps: float, latency_us: float, before_s: float | None = None) -> Link:
        return Link(self._queue(pps, before_s), latency_us * 1e-6)

    def run(self) -> Trace:
        """Simulates until every worker has done its steps and left, or the accuracy is reached at which the cell ends:
        then contributions may be under way, and fewer applied than sent. Raises Stuck."""
        began = time.perf_counter()
        initial = self.workers[0].learner.accuracy()
        try:
            self._recent[:] = initial
            processes = [self._env.process(self._train(worker)) for worker in self.workers]
            if self._running is not None:
                self._env.process(self._decide(self._running))
            self._env.run(until=simpy.AnyOf(self._env, [simpy.AllOf(self._env, processes), self._reached]))
            applied = sum(self.plane.count("contributions", worker.id) for worker in self.workers)
            dropped = self.plane.dropped()
            staleness = np.array([self.plane.staleness(worker.id) for worker in self.workers]) / self.plane.slots
        except RuntimeError as error:
            raise Stuck(f"{self.cell}: {error}") from error
        finally:
            self.plane.close()
        steps = np.array(self._rows, STEP)
        counts = [worker.protocol.counts for worker in self.workers]
        facts = {
            "contributions_sent": sum(worker.protocol.seq for worker in self.workers) * self.plane.slots,
            "contributions_applied": applied,
            "dropped": dropped,
            "retransmissions": sum(count.retransmissions for count in counts),
            "reads_at_risk": self._at_risk,
            "engine_s": time.perf_counter() - began,
        }
        steps = steps[np.argsort(steps["ended"], kind="stable")]
        return Trace(self.cell, steps, staleness, tuple(self._swaps), initial, facts)

    # -- a worker -----------------------------------------------------------------------------------------------

    def _train(self, worker: Worker) -> Process:
        for step in range(1, self.cell.steps + 1):
            yield from self._step(worker, step)
        worker.left = True
        worker.reports.send("finished", self._env.now, worker.done, float("nan"), force=True)
        self._install(self._strategy, self._evicted)

    def _step(self, worker: Worker, step: int) -> Process:
        env, cell, reports = self._env, self.cell, worker.reports
        began = env.now
        gradient, loss = worker.learner.gradient(step)
        delay = self._straggler.delay(worker.id, step, self._mean_s, cell.seed)
        if delay > 1:
            reports.send("paused", began, worker.done, loss, force=True)
        yield env.timeout(self._mean_s + delay)
        pushed = env.now
        reports.sums["compute_s"] += pushed - began
        reports.send("exchanging", pushed, worker.done, loss)
        worker.protocol.push(self._quantised(gradient), pushed)
        yield from self._exchange(worker)
        read = worker.protocol.finish()
        delta = self._fixed.dequantise(read.difference.reshape(-1)[: self._size])
        reports.agreement.note(gradient, delta)
        worker.learner.apply(delta)
        most = int(read.contributions.max())
        self._at_risk += most > self._fixed.capacity
        worker.done = step
        reports.sums["waiting_s"] += read.waited_s
        reports.sums["network_s"] += env.now - pushed - read.waited_s
        reports.epoch = read.epoch
        reports.send("computing", env.now, step, loss)
        evaluated = step % cell.eval_every == 0 or step == cell.steps
        accuracy = worker.learner.accuracy() if evaluated else float("nan")
        if evaluated and cell.until:
            self._recent[worker.id] = [*self._recent[worker.id, 1:], np.float32(accuracy)]
            if self._recent.mean() >= cell.until and not self._reached.triggered:
                self._reached.succeed()
        self._rows.append((worker.id, step, began, pushed, env.now, read.waited_s, read.epoch, most, loss, accuracy))

    def _quantised(self, gradient: np.ndarray) -> np.ndarray:
        whole = np.zeros((self.plane.slots, self.plane.program.lanes), np.int32)
        whole.reshape(-1)[: self._size] = self._fixed.quantise(gradient)[0]
        return whole

    def _exchange(self, worker: Worker) -> Process:
        """Sends and receives packets until every slot is answered."""
        env, protocol = self._env, worker.protocol
        while not protocol.done:
            self._send(worker)
            deadline = protocol.deadline()
            worker.arrived = env.event()
            timer = env.timeout(max((deadline or env.now) - env.now, 1e-6))
            yield worker.arrived | timer
            worker.arrived = None
            for rows in worker.inbox:
                if not protocol.done:
                    protocol.receive(rows, env.now)
            worker.inbox.clear()

    # -- the network -----------------------------------------------------------------------------------------

    def _send(self, worker: Worker) -> None:
        payloads = worker.protocol.packets(self._env.now)
        if not len(payloads):
            return
        worker.sendings += 1
        # What is sent again probes for an answer: a few packets, not all those that a packet here stands for.
        attempts = worker.protocol.exchange.attempts[headers_of(payloads)["slot"]]
        parts = np.where(attempts > 1, 1 / self._weight, 1.0)
        times = worker.up.carry(np.full(len(payloads), self._env.now), parts)
        frames = self.plane.frames(worker.id, payloads)
        entrance = self.plane.entrances[worker.id]
        for start in range(0, len(payloads), self._group):
            part = slice(start, start + self._group)
            self._at(times[part][-1], partial(self._through, entrance, (frames[part], times[part])))

    def _through(self, at: Port, packets: Packets) -> None:
        """A switch processes packets that have arrived at a port; what comes out goes to workers or to another
        switch."""
        frames, times = packets
        left = self._switches[at[0]].serve(times)
        for port, cause, caused in self.plane.through(at, frames):
            arrives = self._links[port].carry(left[cause])
            end = self.plane.ends[port]
            if isinstance(end, int):
                action = partial(self._arrives, self.workers[end], caused[:, ENCAPSULATION_BYTES:])
            else:
                action = partial(self._through, end, (caused, arrives))
            self._at(arrives[-1], action)

    def _arrives(self, worker: Worker, rows: np.ndarray) -> None:
        worker.inbox.append(rows)
        if worker.arrived is not None and not worker.arrived.triggered:
            worker.arrived.succeed()

    def _at(self, when: float, action: Callable[[], None]) -> None:
        event = self._env.timeout(max(float(when) - self._env.now, 0.0))
        event.callbacks.append(lambda _: action())

    # -- strategies ------------------------------------------------------------------------------------------

    def _install(self, strategy: Strategy, evicted: frozenset[int]) -> None:
        """Installs a strategy for the workers that have neither left nor are evicted, as the controller does."""
        members = [worker.id for worker in self.workers if not worker.left and worker.id not in evicted]
        if members:
            self._epoch += 1
            self._swapped_at = self._env.now
            self.plane.install(self._epoch, shrunk(strategy, members), members)

    def _decide(self, running: RunningStrategy) -> Process:
        """Shows the job to an automatic strategy in every period, and does what it decides."""
        env = self._env
        while True:
            yield env.timeout(running.period_s)
            seen = [self._shown(worker) for worker in self.workers if not worker.left]
            if not seen:
                return
            since = env.now - self._swapped_at
            strategy, evicted = running.decide(env.now, self._epoch, since, self._strategy, self._evicted, seen)
            if (strategy, evicted) == (self._strategy, self._evicted):
                continue
            yield env.timeout(SWAP_S)
            self._strategy, self._evicted = strategy, evicted
            out = f", without {', '.join(map(str, sorted(evicted)))}" if evicted else ""
            self._swaps.append(Swap(env.now, f"{strategy}{out}"))
            self._install(strategy, evicted)

    def _shown(self, worker: Worker) -> tuple[int, dict[str, int], int, Reports]:
        counters = {name: self.plane.count(name, worker.id) for name in SPOKE}
        # The switch hears the first of the many that a packet stands for at once, not when the last has arrived.
        heard = {**counters, "repeats": counters["repeats"] + worker.sendings}
        return worker.id, heard, counters["contributions"] // self.plane.slots, worker.reports


def _plane(cell: Cell, size: int, strategy: Strategy) -> DataPlane:
    if cell.racks is not None:
        return Tree(Racks.even(cell.workers, cell.racks.count), size, strategy)
    return OneSwitch(Program.load(cell.data_plane), cell.workers, size, strategy)


def simulate(cell: Cell) -> Trace:
    """Simulates a cell. Raises Stuck, or as `Cell.check`."""
    with fresh_modules():
        return _simulate(cell)


def _simulate(cell: Cell) -> Trace:
    if cell.model not in architectures.MODELS:
        return Simulation(cell).run()
    data.keep(cell.dataset)  # all workers use it, and so will this process's next cells
    trace = Simulation(cell).run()
    gc.collect()  # a simulation's objects refer to each other; the next ones must not wait for 180 MB of images each
    return trace


@dataclass
class Queue:
    """The queue of a link or a switch, without a limit. service_s: seconds that it takes for each packet. through_s:
    how long after its arrival a packet leaves at the earliest. It is less than service_s for a packet that stands for
    many that come one after another: the first of them continue while the last ones are still on their way here."""

    service_s: float
    through_s: float | None = None
    _free_at: float = field(default=0.0, init=False)

    def serve(self, ready: np.ndarray, parts: np.ndarray | float = 1.0) -> np.ndarray:
        """When packets leave, float64[n], that arrive at these times, float64[n], ascending. parts: what part of
        service_s each of them takes, float64[n] or one number, 0 to 1."""
        if not self.service_s or not ready.size:
            return ready
        takes = np.broadcast_to(self.service_s * np.asarray(parts), ready.shape)
        through = takes if self.through_s is None else np.minimum(takes, self.through_s)
        before = np.cumsum(takes) - takes
        # A packet begins when the last one is through, or so early that it leaves in time after its arrival.
        begins = np.maximum.accumulate(np.maximum(ready + through - takes, self._free_at) - before) + before
        left = begins + takes
        self._free_at = float(left[-1])
        return np.asarray(left)


@dataclass
class Reports:
    """A worker's reports, as `serene.client.Session` sends them. sums: seconds since the run began, which the
    simulation adds to, as to agreement. momentum: of the optimiser. epoch: of the last read. latest: the last
    report that was sent."""

    momentum: float = 0.0
    agreement: Agreement = field(default_factory=Agreement)
    sums: Report = field(default_factory=lambda: Report(compute_s=0.0, network_s=0.0, waiting_s=0.0))
    epoch: int | None = None
    latest: Report | None = None
    _sent_at: float = -REPORT_EVERY_S

    def send(self, state: str, now: float, iteration: int, loss: float, *, force: bool = False) -> None:
        """Sends a report, unless the last one was sent only just before; always if an exchange has ended, or by
        force."""
        ended = self.latest is not None and self.latest["state"] == "exchanging" != state
        if force or ended or now - self._sent_at >= REPORT_EVERY_S:
            self._sent_at = now
            self.latest = {
                "state": state, "iteration": iteration, "epoch": self.epoch, "loss": loss, "momentum": self.momentum,
                **self.sums, **self.agreement.facts(),
            }  # fmt: skip


class RunningStrategy:
    """An automatic strategy with what is remembered of a job, as `serene.controller.automatic.runner` keeps it. name:
    for errors."""

    def __init__(self, name: str, automatic: Automatic, workers: int) -> None:
        self.automatic = automatic
        self.period_s = terms(name, automatic).period_s
        self._name, self._workers = name, workers
        self._observer = Observer()
        self._silence = Silence()

    def decide(
        self,
        now: float,
        epoch: int,
        since_swap_s: float,
        strategy: Strategy,
        evicted: frozenset[int],
        workers: Sequence[tuple[int, Mapping[str, int], int, Reports]],
    ) -> tuple[Strategy, frozenset[int]]:
        """Shows the strategy the job, and returns the strategy and the evicted workers that are to be in force.
        workers: for each that has not left, its number, its counters, how many rounds it has done, and its reports.

        Raises BadAutomatic for a strategy that the controller would end: its error, or an impossible decision."""
        views = []
        for worker, counters, rounds, reports in workers:
            report = reports.latest or {}
            self._silence.note(worker, (spoken(counters), report.get("iteration"), report.get("state")), now)
            self._observer.note(worker, report)
            silent_s = self._silence.seconds(worker, now)
            views.append(self._observer.view(worker, rounds=rounds, is_member=worker not in evicted, silent_s=silent_s))
        try:
            with time_limit(DECISION_TIMEOUT_S):
                decided = checked(self.automatic.decide(Observation(now, epoch, since_swap_s, strategy, views)))
            if decided is None:
                return strategy, evicted
            if isinstance(decided, Strategy):
                decided = Decision(decided)
            if decided.evicted is not None:
                evicted = decided.evicted
                if strangers := evicted - {view.id for view in views}:
                    expected = choices(view.id for view in views)
                    raise BadAutomatic(f"worker {choices(sorted(strangers))} cannot be evicted: expected {expected}")
                if evicted.issuperset(view.id for view in views):
                    raise BadAutomatic("the last member cannot be evicted")
            decided.strategy.compile(range(self._workers))
        except Interrupted:
            raise
        except BaseException as error:  # of the user's code
            text = in_words(error, automatic_parts(self._name)[0])
            raise BadAutomatic(one_line(f"{self._name}: {text}", LONGEST_ERROR)) from None
        return decided.strategy, evicted
