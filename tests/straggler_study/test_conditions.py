"""A result names the machine that made it, and how busy that was, or that this was not recorded."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from serene.experiments.shared import machine
from serene.experiments.shared.machine import Conditions, Stalls, observed, summary
from serene.experiments.straggler_study.cell import Cell

CELL = Cell(model="nothing", steps=3)


def test_machine_description_has_processors_memory_and_kernel() -> None:
    assert re.fullmatch(
        rf".+, {os.cpu_count()} processors, \d+ GB; Linux {re.escape(os.uname().release)}, Python 3\..*, PyTorch .+",
        machine.here(),
    )


def test_conditions_cover_only_the_measured_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, stalled, load = [100.0], [5.0], [1.0]

    def measure() -> str:
        clock[0], stalled[0], load[0] = 104.0, 6.0, 3.0
        return "found"

    monkeypatch.setattr(machine, "unix_s", lambda: clock[0])
    monkeypatch.setattr(machine, "stalled_s", lambda: stalled[0])
    monkeypatch.setattr(machine, "load", lambda: load[0])
    assert observed(measure) == ("found", Conditions(machine.here(), 1.0, 3.0, 0.25))
    monkeypatch.setattr(machine, "stalled_s", lambda: None)  # a kernel that does not count
    assert observed(measure)[1].stalled is None


def test_stalls_are_counted_only_during_training(monkeypatch: pytest.MonkeyPatch) -> None:
    stalls = Stalls()
    for now, counted in ((0.0, 0.0), (10.0, 8.0), (20.0, 9.0), (30.0, 19.0)):
        monkeypatch.setattr(machine, "unix_s", lambda now=now: now)
        monkeypatch.setattr(machine, "stalled_s", lambda counted=counted: counted)
        stalls.look()
    assert stalls.share(9.0, 21.0) == pytest.approx(0.1)
    assert stalls.whole() == pytest.approx(19 / 30)
    assert stalls.share(11.0, 19.0) is None


def test_stall_time_is_parsed_from_kernel_pressure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cpu"
    path.write_text("some avg10=1.00 avg60=2.00 avg300=3.00 total=2500000\nfull avg10=0.00 avg60=0.00 total=9\n")
    monkeypatch.setattr(machine, "PRESSURE", path)
    assert machine.stalled_s() == 2.5
    path.unlink()
    assert machine.stalled_s() is None


def test_conditions_summary_counts_missing_records() -> None:
    some = [Conditions("one", 1.0, 2.0, 0.1), Conditions("other", 3.0, 4.0, None), Conditions("other", 5.0, 9.0, 0.3)]
    assert summary([*some, Conditions()]) == (
        "Machine: 2 on other; 1 on one; 1 on not recorded. Median of the load before: 3.0 (at most 5.0, 1 not "
        "recorded), after: 4.0 (at most 9.0, 1 not recorded), share of the time in which something waited for a "
        "processor: 20% (at most 30%, 2 not recorded)."
    )
    assert summary([Conditions()]) == (
        "Machine: not recorded. Median of the load before: not recorded, after: not recorded, share of the time in "
        "which something waited for a processor: not recorded."
    )
