"""The metrics: read by Prometheus' own parser, compared with the status and with the list in docs/telemetry.md."""

from __future__ import annotations

import re

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.utils import floatToGoString

from serene.controller.status.metrics import Metrics
from serene.controller.switch.counters import WORKER_COUNTERS
from serene.report import Facts
from tests.controller.processes import ROOT
from tests.controller.statuses import job_status, status_of, worker_status

PAGE = ROOT / "docs" / "telemetry.md"


def test_metrics_equal_the_status_number_by_number() -> None:
    """In this state all numbers differ."""
    some, other = (
        worker_status(
            number, {"compute_s": 1.5, "network_s": 2.5, "waiting_s": 3.5, "loss": 4.5, "accuracy": 0.5},
            state=state, iteration=70 + number, staleness=[2, 0, 3, *[0] * 12, 1],
            **{name: 10 * place + number for place, name in enumerate(WORKER_COUNTERS, 1)},
        )
        for number, state in ((0, "running"), (1, "evicted"))
    )  # fmt: skip
    runs = job_status(some, other, job=3, session=21, epoch=22, lost_sessions=23, slots=24)
    waits = job_status(job=4, state="waiting", session=0, epoch=0, slots=25)
    status = status_of(runs, waits)
    switch = status.switch.model_copy(update={"slots": 26, "lanes": 27, "drops": {"stranger": 28, "old_session": 29}})
    metrics = Metrics()
    metrics.swap_took(0.03)
    text = metrics.text(status.model_copy(update={"switch": switch})).decode()
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith("_bucket")
    }
    by_job = {
        "running": (1, 0),
        "session": (21, 0),
        "epoch": (22, 0),
        "sessions_lost": (23, 0),
        "workers": (1, 0),
        "slots": (24, 25),
    }
    expected: dict[tuple[str, ...], float] = {
        ("serene_switch_up",): 1, ("serene_switch_slots",): 26, ("serene_switch_lanes",): 27,
        ("serene_switch_dropped_packets_total", "stranger"): 28,
        ("serene_switch_dropped_packets_total", "old_session"): 29,
        ("serene_policy_write_seconds_count",): 1, ("serene_policy_write_seconds_sum",): 0.03,
        ("serene_job_info", "", "3", "running", "BSP"): 1, ("serene_job_info", "", "4", "waiting", "BSP"): 1,
        **{(f"serene_job_{name}", f"{job}"): value for name, two in by_job.items() for job, value in enumerate(two, 3)},
        **{("serene_worker_rounds_total", "3", f"{number}"): 70 + number for number in range(2)},
        **{(f"serene_worker_{name}_packets_total", "3", f"{number}"): 10 * place + number
           for place, name in enumerate(WORKER_COUNTERS, 1) for number in range(2)},
        **{(f"serene_worker_{name}", "3", f"{number}"): value
           for name, value in {
               "staleness_rounds_count": 6, "staleness_rounds_sum": 21, "compute_seconds_total": 1.5,
               "network_seconds_total": 2.5, "waiting_seconds_total": 3.5, "loss": 4.5, "accuracy_ratio": 0.5,
           }.items() for number in range(2)},
    }  # fmt: skip
    assert samples == expected


def test_metric_numbers_are_formatted_as_by_prometheus() -> None:
    """Values, and the bounds of buckets: 1 and 1.0 would be two series. Reports that are no numbers have no metric."""
    facts: Facts = {"loss": 1, "compute_s": 10**7, "waiting_s": "much", "accuracy": None}
    metrics = Metrics()
    metrics.swap_took(0.03)
    text = metrics.text(status_of(job_status(worker_status(0, facts, staleness=[2, 0, 3, *[0] * 12, 1])))).decode()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    written = [line.rpartition(" ")[2] for line in lines] + re.findall(r'\ble="([^"]*)"', text)
    assert 'serene_worker_loss{job="0",worker="0"} 1.0' in lines
    assert not [line for line in lines if line.startswith(("serene_worker_waiting", "serene_worker_accuracy"))]
    assert written == [floatToGoString(float(number)) for number in written]  # type: ignore[no-untyped-call]
    series: dict[tuple[str, ...], list[float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if family.type == "histogram" and not sample.name.endswith("_sum"):
                who = (family.name, *(value for name, value in sample.labels.items() if name != "le"))
                series.setdefault(who, []).append(sample.value)
    assert len(series) == 2
    for counts in series.values():
        assert counts == sorted(counts) and counts[-1] == counts[-2]


def test_metrics_and_their_page_list_the_same_names() -> None:
    text = Metrics().text(status_of(job_status(worker_status(0, {"loss": 1.0, "accuracy": 0.5})))).decode()
    exported = {
        (name, kind, meaning)
        for name, meaning in re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE)
        for kind in re.findall(rf"^# TYPE {name} (\S+)$", text, re.MULTILINE)
    }
    rows = re.findall(r"^\| `(serene_\w+)` \| (\w+) \| (?:[^|]*) \| ([^|]+) \|$", PAGE.read_text(), re.MULTILINE)
    assert set(rows) == exported
