"""The controller's status as Prometheus metrics: ``GET /metrics``.

Every number comes out of the data plane: counters read by P4Runtime, and the workers' reports, which the switch hands
up. docs/telemetry.md lists the metrics; a test holds the list and this module together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from controller.automatic.observer import number
from controller.switch.switch import WORKER_COUNTERS
from serene.strategy import strategy_from_dict

Json = dict[str, Any]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
WHO = ("job", "worker")

PACKETS = {
    "contributions": "PUSHes that were added to a slot's sum",
    "repeats": "PUSHes recognised as seen before",
    "blocked": "PUSHes that were not answered at once",
    "answers": "Answers to a PUSH or PULL",
    "releases": "Answers sent when a round completed",
    "nudges": "NUDGEs sent when an epoch began",
}
SECONDS = {
    "compute_s": ("compute", "Time the worker computed, as it reports"),
    "network_s": ("network", "Time the worker sent and received, as it reports"),
    "waiting_s": ("waiting", "Time the worker waited for others at the barrier, as it reports"),
}
SWAP_BUCKETS_MS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)


class SwapTimes:
    """How long the switch took to write new policies, as a histogram."""

    def __init__(self) -> None:
        self._counts = [0] * (len(SWAP_BUCKETS_MS) + 1)
        self._sum_ms = 0.0

    def add(self, milliseconds: float) -> None:
        place = next((i for i, bound in enumerate(SWAP_BUCKETS_MS) if milliseconds <= bound), len(SWAP_BUCKETS_MS))
        self._counts[place] += 1
        self._sum_ms += milliseconds

    def family(self) -> Metric:
        family = HistogramMetricFamily(
            "serene_policy_write_seconds", "Time the switch took to put a new policy in force"
        )
        bounds = [format(bound / 1e3, "g") for bound in SWAP_BUCKETS_MS] + ["+Inf"]
        family.add_metric([], _cumulative(bounds, self._counts), self._sum_ms / 1e3)
        return family


class Metrics(Collector):
    """Everything, from a status as `controller.status.snapshot` makes it."""

    def __init__(self, swaps: SwapTimes) -> None:
        self._swaps = swaps
        self._status: Json = {}
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def text(self, status: Json) -> bytes:
        """The exposition format, of this status."""
        self._status = status
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        return []  # or registering would collect from a status that is not there yet

    def collect(self) -> Iterator[Metric]:
        switch, jobs = self._status["switch"], self._status["jobs"]
        yield from _of_switch(switch)
        yield self._swaps.family()
        yield from _of_jobs(jobs)
        yield from _of_workers([(job, worker) for job in jobs for worker in job["workers"]])


def _of_switch(switch: Json) -> Iterator[Metric]:
    yield GaugeMetricFamily("serene_switch_up", "Whether the controller commands the switch", value=switch["connected"])
    yield GaugeMetricFamily("serene_switch_slots", "Slots of the switch's program", value=switch["slots"])
    yield GaugeMetricFamily("serene_switch_lanes", "Values that a slot holds", value=switch["lanes"])
    drops = CounterMetricFamily("serene_switch_dropped_packets", "Packets dropped, by reason", labels=["reason"])
    for reason, packets in switch["drops"].items():
        drops.add_metric([reason], packets)
    yield drops


def _of_jobs(jobs: list[Json]) -> Iterator[Metric]:
    info = InfoMetricFamily("serene_job", "What is in force", labels=["job"])
    gauges: list[tuple[str, str, Callable[[Json], float]]] = [
        ("running", "Whether the job runs", lambda job: job["state"] == "running"),
        ("session", "The job's session; grows when the switch has lost its state", lambda job: job["session"]),
        ("epoch", "The job's epoch; grows with every swap", lambda job: job["epoch"]),
        ("sessions_lost", "Sessions that the switch has lost", lambda job: job["lost_sessions"]),
        ("workers", "Workers that take part", lambda job: sum(w["state"] == "running" for w in job["workers"])),
        ("slots", "Slots that the job holds", lambda job: job["slots"]),
    ]
    for job in jobs:
        automatic = job["automatic"]["name"] if job["automatic"] else ""
        strategy = str(strategy_from_dict(job["strategy"]))
        info.add_metric([str(job["job"])], {"strategy": strategy, "automatic": automatic, "state": job["state"]})
    yield info
    for name, text, value in gauges:
        family = GaugeMetricFamily(f"serene_job_{name}", text, labels=["job"])
        for job in jobs:
            family.add_metric([str(job["job"])], float(value(job)))
        yield family


def _of_workers(workers: list[tuple[Json, Json]]) -> Iterator[Metric]:
    def labels(job: Json, worker: Json) -> list[str]:
        return [str(job["job"]), str(worker["worker"])]

    rounds = CounterMetricFamily("serene_worker_rounds", "Iterations contributed to, in this session", labels=WHO)
    for job, worker in workers:
        rounds.add_metric(labels(job, worker), worker["iteration"])
    yield rounds
    for name in WORKER_COUNTERS:
        family = CounterMetricFamily(f"serene_worker_{name}_packets", PACKETS[name], labels=WHO)
        for job, worker in workers:
            family.add_metric(labels(job, worker), worker[name])
        yield family
    staleness = HistogramMetricFamily(
        "serene_worker_staleness_rounds", "How stale contributions were when they arrived, in rounds", labels=WHO
    )
    for job, worker in workers:
        counts = worker["staleness"]
        bounds = [str(rounds) for rounds in range(len(counts) - 1)] + ["+Inf"]
        total = sum(rounds * packets for rounds, packets in enumerate(counts))
        staleness.add_metric(labels(job, worker), _cumulative(bounds, counts), total)
    yield staleness
    for key, (name, text) in SECONDS.items():
        yield from _reported(CounterMetricFamily(f"serene_worker_{name}_seconds", text, labels=WHO), workers, key)
    loss = GaugeMetricFamily("serene_worker_loss", "Training loss of the last iteration, as reported", labels=WHO)
    yield from _reported(loss, workers, "loss")
    accuracy = GaugeMetricFamily("serene_worker_accuracy_ratio", "Test accuracy, as reported last", labels=WHO)
    yield from _reported(accuracy, workers, "accuracy")


def _reported(family: Any, workers: list[tuple[Json, Json]], key: str) -> Iterator[Metric]:
    """A worker may have reported nothing yet, or something unusable."""
    for job, worker in workers:
        value = number((worker["report"] or {}).get(key))
        if value is not None:
            family.add_metric([str(job["job"]), str(worker["worker"])], value)
    yield family


def _cumulative(bounds: list[str], counts: list[int]) -> list[tuple[str, float]]:
    return [(bound, float(sum(counts[: place + 1]))) for place, bound in enumerate(bounds)]
