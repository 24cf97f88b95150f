"""Is the slow worker named, and nobody where nobody is slow? Seeded runs, in virtual time and through the switch.

A run is some workers in lockstep, as BSP has them. What each measures of its steps goes the real way: into a report's
text, and from there to the rule (`serene.controller.status.slow`).
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from serene.arguments import Parser, command, whole
from serene.client import FrameTransport
from serene.client.allreduce.pool import Pool
from serene.controller.http.client import ControllerClient
from serene.controller.jobs.job import Job, JobState, Worker, WorkerState
from serene.controller.settings import UdpPort
from serene.controller.status.slow import SlowWorkers
from serene.errors import SereneError
from serene.steps import REPORTED, StepTimes
from serene.strategy import BSP

KINDS = ("computing", "bursts", "link")  # what may be slow; the others: "nobody", and each "in turn"
WITHIN = 10  # steps, from the first slow one on
STEPS, STEPS_OF_NOBODY = 60, 120
REPORT_EVERY_S = 0.05
BEGAN = 1_700_000_000.0


@dataclass(frozen=True)
class Plan:
    """One run. slow: which worker is slow, in what (of KINDS) and from which step on; kind "nobody" and "in turn": none
    is, with every worker twice as slow now and then. compute_s: of a step in the mean; noise, noise_s: its standard
    deviation, and that of the way to the switch; hiccups: the probability that a step of a worker takes up to twice as
    long."""

    kind: str
    workers: int
    slow: int
    begins: int
    compute_s: float
    noise: float
    way_s: float
    hiccups: float
    seed: int

    @classmethod
    def of(cls, kind: str, seed: int) -> Plan:
        rng = np.random.default_rng((seed, 0x510))
        workers = int(rng.choice([2, 3, 4, 8, 16]))
        return cls(
            kind, workers, int(rng.integers(workers)), int(rng.integers(2) * rng.integers(1, 40)),
            float(np.exp(rng.uniform(np.log(0.05), np.log(1.0)))), float(rng.uniform(0.003, 0.02)),
            float(rng.uniform(0.0002, 0.005)), 0.3 if kind == "in turn" else float(rng.uniform(0, 0.01)), seed,
        )  # fmt: skip

    def times(self, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Seconds that each worker computes in each step, and that its packets take to the switch: float64[steps,
        workers] each."""
        rng = np.random.default_rng((self.seed, 0x511))
        shape = (steps, self.workers)
        together = 1 + 0.1 * rng.standard_normal((steps, 1)) * (rng.random() < 0.5)  # as batches of unequal length have
        factor = np.clip(together, 0.5, 2) * np.clip(1 + self.noise * rng.standard_normal(shape), 0.5, 2)
        factor *= np.where(rng.random(shape) < self.hiccups, rng.uniform(1.2, 2, shape), 1)
        way = self.way_s * (1 + 0.3 * rng.random(shape))
        is_slow = np.arange(steps) >= self.begins
        if self.kind == "computing":
            factor[is_slow, self.slow] *= 1.1
        elif self.kind == "bursts":
            length, pause = rng.integers(10, 30, 2)
            burst = is_slow & ((np.arange(steps) - self.begins) % (length + pause) < length)
            factor[burst, self.slow] *= 1 + rng.uniform(0.3, 2) * rng.uniform(0.8, 1.2, int(burst.sum()))
        elif self.kind == "link":
            way[is_slow, self.slow] += 0.1 * self.compute_s * rng.uniform(0.9, 1.1, int(is_slow.sum()))
        return self.compute_s * factor, way


@dataclass(frozen=True)
class Named:
    """Who was named first, after how many steps from the beginning of the run, and for what."""

    worker: int
    steps: int
    where: str


def play(plan: Plan, steps: int) -> Named | None:
    """The first worker that is named in a run."""
    compute, way = plan.times(steps)
    job = Job(id=0, workers_expected=plan.workers, strategy=BSP(), scale=1, limit=1.0, state=JobState.RUNNING)
    job.session, job.epoch = 1, 1
    job.workers = [Worker(id=number, state=WorkerState.RUNNING) for number in range(plan.workers)]
    slow, records = SlowWorkers(), [StepTimes() for _ in job.workers]
    begins = np.zeros(plan.workers)  # of a worker's step
    reported = np.full(plan.workers, -1.0)
    round_trip = 2 * way.min()  # as a worker has measured it when it last was the last
    for step in range(steps):
        sent = begins + compute[step]
        ends = (sent + way[step]).max() + way[step]  # the last one's packets complete the round
        exchange = ends - sent
        waiting = np.maximum(exchange - np.maximum(2 * way[step], round_trip), 0)
        for worker, record in enumerate(records):
            record.add(step, compute[step, worker], exchange[worker], waiting[worker], 1)
            if ends[worker] - reported[worker] >= REPORT_EVERY_S:
                reported[worker] = ends[worker]
                slow.note(job, worker, {REPORTED: record.text()}, BEGAN + ends[worker])
        begins = ends
        if (found := slow.of(job)) is not None:
            return Named(found.worker, step + 1, found.where)
    return None


def is_right(plan: Plan, named: Named | None) -> bool:
    """Whether the slow worker was named in time, for what is slow, and nobody where nobody is."""
    if plan.kind not in KINDS:
        return named is None
    where = "network" if plan.kind == "link" else "computing"
    return (
        named is not None
        and (named.worker, named.where) == (plan.slow, where)
        and plan.begins < named.steps <= plan.begins + WITHIN
    )


def virtual(runs: int, first: int = 0) -> dict[str, Counter[str]]:
    """By what is slow: how many runs were right, and how many not; every second run has nobody that is slow."""
    outcomes: dict[str, Counter[str]] = {}
    for seed in range(first, first + runs):
        for kind in (KINDS[seed % len(KINDS)], ("nobody", "in turn")[seed % 2]):
            plan = Plan.of(kind, seed)
            named = play(plan, STEPS if kind in KINDS else STEPS_OF_NOBODY)
            right = is_right(plan, named)
            outcomes.setdefault(kind, Counter())["right" if right else f"{plan} {named}"] += 1
    return outcomes


class Relay:
    """Between a worker and its port of the switch: every packet takes ``delay_s`` more, each way, from when it is set
    on."""

    def __init__(self, port: UdpPort) -> None:
        self.delay_s = 0.0
        self._ends = [_bound() for _ in range(2)]  # for the worker, for the switch
        self.address = self._ends[0].getsockname()
        self.worker = ("127.0.0.1", 0)
        self._switch = ("127.0.0.1", port.switch)
        self._ends[1].close()
        self._ends[1] = _bound(port.host)
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._carry, args=(way,), daemon=True) for way in range(2)]
        for thread in self._threads:
            thread.start()

    def _carry(self, way: int) -> None:
        ours, other = self._ends[way], self._ends[1 - way]
        late: deque[tuple[float, bytes]] = deque()
        while not self._over.is_set():
            ours.settimeout(max(late[0][0] - time.monotonic(), 1e-4) if late else 0.1)
            with suppress(TimeoutError):
                packet, sender = ours.recvfrom(1 << 16)
                self.worker = sender if way == 0 else self.worker
                late.append((time.monotonic() + self.delay_s, packet))
            while late and late[0][0] <= time.monotonic():
                other.sendto(late.popleft()[1], self._switch if way == 0 else self.worker)

    def close(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        for end in self._ends:
            end.close()


def _bound(port: int = 0) -> socket.socket:
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.bind(("127.0.0.1", port))
    return end


def real(plan: Plan, client: ControllerClient, steps: int) -> Named | None:
    """As `play`, with a switch of `serenectl up --local --udp`: workers that sleep as long as they would compute, in
    threads, and sum through the switch."""
    compute, _ = plan.times(steps)
    status = client.status().switch
    if len(status.udp_ports) < plan.workers:  # what delays a link sits between sockets
        raise SereneError(
            f"the switch has {len(status.udp_ports)} UDP ports: start it with 'serenectl up --local --udp'"
        )
    job = client.create_job(plan.workers, BSP(), pool_slots=16)
    relays: list[Relay] = []
    pools: list[Pool] = []
    named: list[Named] = []
    over = threading.Event()

    def work(worker: int) -> None:
        pool = pools[worker]
        pool.join()
        for step in range(steps):
            time.sleep(compute[step, worker])
            if worker == plan.slow and plan.kind == "link" and step >= plan.begins:
                relays[0].delay_s = 0.05 * plan.compute_s  # each way
            pool.all_reduce(np.ones(1000, np.float32))
        pool.leave()

    def watch() -> None:
        while not over.wait(0.02):
            if (slow := client.job(job.job).slow) is not None and not named:
                named.append(Named(slow.worker, pools[slow.worker].collectives, slow.where))

    try:
        for worker, port in zip(range(plan.workers), status.udp_ports, strict=False):
            ours, switch = ("127.0.0.1", port.host), ("127.0.0.1", port.switch)
            if plan.kind == "link" and worker == plan.slow:
                relays.append(Relay(port))
                ours, switch = ("127.0.0.1", 0), relays[0].address
            transport = FrameTransport(port.port - 1, local=ours, switch=switch, switch_ip=status.ip)
            pools.append(Pool(transport, job.job, worker, slots=job.slots, lanes=status.lanes))
        with ThreadPoolExecutor(plan.workers + 1) as threads:
            watching = threads.submit(watch)
            list(threads.map(work, range(plan.workers)))
            over.set()
            watching.result()
    finally:
        over.set()
        for pool in pools:
            pool.close()
        for relay in relays:
            relay.close()
        with suppress(SereneError):
            client.delete_job(job.job)
    return named[0] if named else None


def reals(runs: int, client: ControllerClient, compute_s: float) -> Iterator[tuple[Plan, Named | None]]:
    """Seeded runs of each kind, one after the other, with two to four workers."""
    for seed in range(runs):
        plan = Plan.of((*KINDS, "nobody")[seed % 4], seed)
        workers = 2 + seed % 3
        plan = replace(plan, workers=workers, slow=seed % workers, begins=seed % 7, compute_s=compute_s, hiccups=0.0)
        yield plan, real(plan, client, plan.begins + WITHIN + 2)


@command
def main() -> int:
    parser = Parser("Checks that only the slow worker is named. Seeded runs in virtual time or through a switch.")
    add = parser.add_argument
    add("--runs", type=whole(1), default=1000, help="runs with a slow worker; as many more have none (default 1000)")
    add("--real", type=whole(1), metavar="RUNS", help="real runs through the switch of `serenectl up --local --udp`")
    add("--compute", type=float, default=1.0, metavar="S", help="seconds of compute time per real step (default 1)")
    options = parser.parse_args()
    if options.real:
        with ControllerClient() as client:
            return _print_reals(options.real, client, options.compute)
    outcomes = virtual(options.runs)
    for kind, counts in outcomes.items():
        print(f"{kind}: right in {counts['right']} of {sum(counts.values())} runs")
        for wrong in (what for what in counts if what != "right"):
            print(f"  {wrong}")
    with_slow = [outcomes[kind] for kind in KINDS if kind in outcomes]
    right, all_ = sum(counts["right"] for counts in with_slow), sum(sum(counts.values()) for counts in with_slow)
    print(f"a slow worker named within {WITHIN} steps in {right} of {all_} runs")
    return 0


def _print_reals(runs: int, client: ControllerClient, compute_s: float) -> int:
    right = 0
    for number, (plan, named) in enumerate(reals(runs, client, compute_s)):
        right += (now := is_right(plan, named))
        whom = f"{plan.kind}, worker {plan.slow} of {plan.workers} from step {plan.begins} on"
        print(
            f"{number}: {whom if plan.kind in KINDS else 'nobody'}: {named} {'right' if now else 'WRONG'}", flush=True
        )
    print(f"right in {right} of {runs} real runs")
    return int(right < runs)


if __name__ == "__main__":
    raise SystemExit(ended(main))
