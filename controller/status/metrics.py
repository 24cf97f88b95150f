"""The controller's status as Prometheus metrics: ``GET /metrics``.

Every number comes from the data plane: counters that P4Runtime reads, and the workers' reports, which the switch punts.
docs/telemetry.md lists the metrics, and a test compares the list with this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from prometheus_client import CollectorRegistry, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from serene.controller.jobs.job import JobState, WorkerState
from serene.controller.status.model import JobStatus, Status, SwitchStatus, WorkerStatus
from serene.report import Number, number

OneWorker = tuple[JobStatus, WorkerStatus]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
WHO = ("job", "worker")

Value = Callable[[WorkerStatus], float | None]


def _reports(key: Number) -> Value:
    return lambda worker: number(worker.report, key)


# Metrics of each worker, by the ends of their names: descriptions and values.
COUNTERS: dict[str, tuple[str, Value]] = {
    "rounds": ("Iterations contributed to, in this session", attrgetter("iteration")),
    "contributions_packets": ("PUSHes that were added to a slot's sum", attrgetter("contributions")),
    "repeats_packets": ("PUSHes recognised as repeats", attrgetter("repeats")),
    "blocked_packets": ("PUSHes that were not answered at once", attrgetter("blocked")),
    "answers_packets": ("Answers to a PUSH or PULL", attrgetter("answers")),
    "releases_packets": ("Answers sent when a round completed", attrgetter("releases")),
    "nudges_packets": ("NUDGEs sent when an epoch began", attrgetter("nudges")),
    "compute_seconds": ("Time the worker computed, as it reports", _reports("compute_s")),
    "network_seconds": ("Time the worker sent and received, as it reports", _reports("network_s")),
    "waiting_seconds": ("Time the worker waited for others at the barrier, as it reports", _reports("waiting_s")),
}
GAUGES: dict[str, tuple[str, Value]] = {
    "loss": ("Training loss of the last iteration, as reported", _reports("loss")),
    "accuracy_ratio": ("Test accuracy, as reported last", _reports("accuracy")),
}
SWAP_BUCKETS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)

disable_created_metrics()  # type: ignore[no-untyped-call]  # when a histogram was made is of no use


class Metrics(Collector):
    """All metrics of a status, and the histogram of swaps, which this object stores."""

    def __init__(self) -> None:
        self._swaps = Histogram(
            "serene_policy_write_seconds",
            "Time the switch took to put a new policy in force",
            buckets=SWAP_BUCKETS_S,
            registry=None,
        )
        self._status: Status | None = None
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def swap_took(self, seconds: float) -> None:
        """Records the time in which a new policy was put in force."""
        self._swaps.observe(seconds)

    def text(self, status: Status) -> bytes:
        """The metrics of this status in Prometheus' text format."""
        self._status = status
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Empty: otherwise registering would collect from a status that does not exist yet."""
        return []

    def collect(self) -> Iterator[Metric]:
        """For prometheus_client, which calls it in ``text``."""
        assert self._status is not None
        jobs = self._status.jobs
        yield from _of_switch(self._status.switch)
        yield from self._swaps.collect()
        yield from _of_jobs(jobs)
        yield from _of_workers([(job, worker) for job in jobs for worker in job.workers])


def _of_switch(switch: SwitchStatus) -> Iterator[Metric]:
    yield GaugeMetricFamily("serene_switch_up", "Whether the controller commands the switch", value=switch.connected)
    yield GaugeMetricFamily("serene_switch_slots", "Slots of the switch's program", value=switch.slots)
    yield GaugeMetricFamily("serene_switch_lanes", "Values that a slot holds", value=switch.lanes)
    drops = CounterMetricFamily("serene_switch_dropped_packets", "Packets dropped, by reason", labels=["reason"])
    for reason, packets in switch.drops.items():
        drops.add_metric([reason], packets)
    yield drops


def _of_jobs(jobs: list[JobStatus]) -> Iterator[Metric]:
    info = InfoMetricFamily("serene_job", "What is in force", labels=["job"])
    gauges: list[tuple[str, str, Callable[[JobStatus], float]]] = [
        ("running", "Whether the job runs", lambda job: job.state is JobState.RUNNING),
        ("session", "The job's session; grows when the switch has lost its state", lambda job: job.session),
        ("epoch", "The job's epoch; grows with every swap", lambda job: job.epoch),
        ("sessions_lost", "Sessions that the switch has lost", lambda job: job.lost_sessions),
        ("workers", "Workers that take part", lambda job: sum(w.state is WorkerState.RUNNING for w in job.workers)),
        ("slots", "Slots that the job holds", lambda job: job.slots),
    ]
    for job in jobs:
        automatic = job.automatic.name if job.automatic else ""
        info.add_metric(
            [str(job.job)], {"strategy": str(job.strategy), "automatic": automatic, "state": job.state.value}
        )
    yield info
    for name, text, value in gauges:
        family = GaugeMetricFamily(f"serene_job_{name}", text, labels=["job"])
        for job in jobs:
            family.add_metric([str(job.job)], float(value(job)))
        yield family


def _of_workers(workers: list[OneWorker]) -> Iterator[Metric]:
    for kind, metrics in ((CounterMetricFamily, COUNTERS), (GaugeMetricFamily, GAUGES)):
        for name, (text, value) in metrics.items():
            family = kind(f"serene_worker_{name}", text, labels=WHO)
            for job, worker in workers:
                if (number := value(worker)) is not None:  # None: it reports none
                    family.add_metric(_labels(job, worker), number)
            yield family
    staleness = HistogramMetricFamily(
        "serene_worker_staleness_rounds", "How stale contributions were when they arrived, in rounds", labels=WHO
    )
    for job, worker in workers:
        counts = worker.staleness
        bounds = [str(float(rounds)) for rounds in range(len(counts) - 1)] + ["+Inf"]
        total = sum(rounds * packets for rounds, packets in enumerate(counts))
        staleness.add_metric(_labels(job, worker), _cumulative(bounds, counts), total)
    yield staleness


def _labels(job: JobStatus, worker: WorkerStatus) -> list[str]:
    return [str(job.job), str(worker.worker)]


def _cumulative(bounds: list[str], counts: Sequence[int]) -> list[tuple[str, float]]:
    return [(bound, float(sum(counts[: last + 1]))) for last, bound in enumerate(bounds)]
