"""The study from the command line: one question, a small grid with its page, interruption, bad options."""

import csv
import json
import re
import signal
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from serene.experiments.network_study import __main__ as study
from serene.experiments.network_study import (
    cells,
    conclusions,
    cost,
    emulation,
    figures,
    findings,
    grid,
    page,
    question_command,
    reference,
    scaling,
)
from serene.experiments.network_study.cells import Cell, ExchangeCell, NetworkCell, Store, TrainingCell, key
from serene.experiments.network_study.emulated.plan import FOLDER, NETWORKS
from serene.experiments.network_study.exchange import SwitchSizes
from serene.experiments.network_study.flows import simgrid_engine
from serene.experiments.network_study.flows.clos import SIZES
from serene.experiments.network_study.grid import GRIDS, Grid
from serene.experiments.network_study.methods import MAIN
from serene.experiments.shared import machine
from serene.experiments.shared.machine import CONDITIONS
from tests.commands import called
from tests.controller.processes import until
from tests.runs import Marked

RING = ExchangeCell(NetworkCell(2, 128), "ring")


def answer(arguments: str) -> str:
    done = called(question_command.main, *arguments.split())
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_command_answers_one_question() -> None:
    output = answer("--hosts 1024 --bisection 0.25 --method leaf-spine-aggregation --gradient-mb 100")
    assert "272 switches, worth 17,408 of 2x2" in " ".join(output.split())
    assert re.search(r"leaf-spine-aggregation\s.*28\.80 ms.*1\.15.*\+0\.0%", output)


def test_command_lists_all_methods_and_a_training() -> None:
    output = answer("--hosts 128 --strategy quorum --straggler slow_worker")
    for name in MAIN:
        assert name in output
    assert "training, k-of-n, straggler slow_worker, 100 ms of computing" in output


def test_store_keeps_results_and_reports_broken_ones_missing(tmp_path: Path) -> None:
    store, other = Store(tmp_path), TrainingCell(NetworkCell(2, 128), "switch", "bsp", iterations=2)
    for cell in (RING, other):
        store.keep(cell, cell.answer())
    found = store.get(RING)
    assert found is not None and found["seconds"] == RING.answer()["seconds"]
    assert store.missing([RING, other, RING]) == []
    whole = store.path(RING).read_text()
    for broken in ("", whole[:50], '{"no": "answer"}'):
        store.path(RING).write_text(broken)
        assert store.missing([RING, other]) == [RING] and not store.path(RING).exists()
    store.path(RING).write_text(whole.replace(f'"version": {cells.VERSION}', '"version": 0'))
    assert store.missing([RING, other]) == [RING] and store.path(RING).exists(), "an earlier version's is replaced"


def test_cell_key_includes_the_program_only_for_switch_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program makes another key; methods of hosts alone keep theirs."""
    asked: list[Cell] = [
        RING, ExchangeCell(NetworkCell(2, 128), "leaf-spine-aggregation"),
        TrainingCell(NetworkCell(2, 128), "servers", "bsp"), TrainingCell(NetworkCell(2, 128), "switch", "bsp"),
    ]  # fmt: skip
    before = [key(cell) for cell in asked]
    monkeypatch.setattr(cells, "our_switch", lambda: SwitchSizes(lanes=64, slots=8))
    assert [key(cell) == known for cell, known in zip(asked, before, strict=True)] == [True, False, True, False]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Grid:
    """Every part of the study on the smallest network, also what names another."""
    sizes = {(2, 128): SIZES[2, 128]}
    for module in (grid, figures, findings, cost, scaling, conclusions):
        monkeypatch.setattr(module, "SIZES", sizes)
    shown = tuple((title, replace(network, layers=2, hosts=128)) for title, network in figures.SHOWN)
    monkeypatch.setattr(figures, "SHOWN", shown)
    monkeypatch.setattr(grid, "SLOW", (2, 128))
    monkeypatch.setattr(grid, "EXCHANGES", ("switch",))
    monkeypatch.setattr(grid, "THINNED", ("bsp",))
    result = Grid("quick", ((2, 128),), ((2, 128),), (3,), (1, 2))
    monkeypatch.setitem(GRIDS, "quick", result)
    return result


def test_quick_runningwrites_its_page(small: Grid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simgrid_engine, "installed", lambda: False)
    draw, drawn = page._pictures, dict[str, Path]()

    def once(*arguments: Any) -> dict[str, Path]:
        """The second page has the first one's pictures."""
        if not drawn:
            drawn.update(draw(*arguments))
        return drawn

    monkeypatch.setattr(page, "_pictures", once)
    output = StringIO()
    options = study.parser().parse_args(["--out", str(tmp_path), "--no-emulation"])
    on_racks = {
        "racks": 2, "hosts": 8, "ratio": 0.25, "method": "ring (gloo)", "simulated_s": 0.3, "emulated_s": 0.33,
        "samples_s": [0.32, 0.35], CONDITIONS: {"machine": "this one", "load_before": 0.1},
    }  # fmt: skip
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / NETWORKS["racks"]).write_text(json.dumps([on_racks]))
    study.run(options, Console(file=output, width=300))
    html = (tmp_path / "report.html").read_text()
    assert str(tmp_path / "report.html") in output.getvalue()
    assert "Not measured here: left out by --no-emulation" in html
    assert "330 ms" in html and "320 ms to 350 ms" in html and "this one" in html
    assert html.count('src="data:image/png;base64,') == len(list(tmp_path.glob("*.png"))) >= 7
    with (tmp_path / "exchange.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len({cell for cell in small.cells() if cell.kind == "exchange"})
    (ring,) = (
        row
        for row in rows
        if row["method"] == "ring" and row["hosts"] == "128" and row["ratio"] == "1.0" and row["routing"] == "d-mod-k"
        and (row["bandwidth_gb"], row["latency_us"], row["gradient_mb"]) == ("4.0", "0.2", "100.0")
    )  # fmt: skip
    assert float(ring["seconds"]) == pytest.approx(RING.answer()["seconds"])
    assert f"{float(ring['seconds']) / 0.025:.2f}" in html
    assert f"Machine: {machine.here()}. Median of the load before: " in html
    assert {row["machine"] for row in rows} == {machine.here()}
    assert all(float(row["load_before"]) >= 0 for row in rows), "an idle machine's is 0"
    # A second run asks nothing; what was answered before conditions were kept says that they were not.
    files = sorted((tmp_path / cells.ANSWERS).glob("*.json"))
    for path in files:
        kept = json.loads(path.read_text())
        assert kept["result"].pop("conditions")["machine"] == machine.here()
        path.write_text(json.dumps(kept))
    before = [path.stat().st_mtime_ns for path in files]
    study.run(options, Console(file=StringIO()))
    assert [path.stat().st_mtime_ns for path in files] == before
    assert "Machine: not recorded. Median of the load before: not recorded" in (tmp_path / "report.html").read_text()
    with (tmp_path / "training.csv").open(newline="") as file:
        assert {row["machine"] for row in csv.DictReader(file)} == {"not recorded"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_ended_study_keeps_finished_answers_and_leaves_no_process(number: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "serene.experiments.network_study", "--out", str(tmp_path), "--no-emulation"]
    running = Marked(command, tmp_path / "log")
    answers = tmp_path / cells.ANSWERS
    try:
        until(lambda: running.process.poll() is not None or any(answers.glob("*.json")), "an answer", 120)
        assert running.process.poll() is None, running.output
        running.process.send_signal(number)
        running.wait(60)
        until(lambda: not running.alive(), "the simulations' processes to end")
    finally:
        running.end()
    if number == signal.SIGTERM:
        assert running.process.returncode == 130
        assert f"stopped; finished cells are kept in {tmp_path}: rerun to resume" in running.output
    kept = [json.loads(path.read_text()) for path in answers.glob("*.json")]
    assert kept and all(answer["result"] for answer in kept)


def test_damaged_simgrid_record_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "simgrid.csv"
    broken.write_text("layers,hosts\n2,128\n")
    monkeypatch.setattr(reference, "RECORD", broken)
    with pytest.raises(reference.BadRecord, match="cannot read"):
        reference.recorded()


def test_simulated_star_times_match_link_capacity() -> None:
    """For 100,000 values over 100 Mbit/s: our frames once each way; a ring's share in TCP."""
    for workers in emulation.WORKERS:
        ours, ring = emulation.simulated(workers)
        assert ours == pytest.approx(400_000 * 1362 / 1280 * 8 / 100e6, rel=0.02)
        assert ring == pytest.approx(2 * (workers - 1) / workers * 400_000 * 1514 / 1448 * 8 / 100e6, rel=0.001)
