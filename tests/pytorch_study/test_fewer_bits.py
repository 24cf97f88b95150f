"""The study of fewer bits: its sums equal a pool's, its times follow from bytes, and finished trainings are reused."""

from __future__ import annotations

import io
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from serene.client import Pool
from serene.client.allreduce.blocks import BITS, Layout
from serene.experiments.correctness.virtual.switch import P4Switch
from serene.experiments.pytorch_study import fewer_bits
from serene.experiments.pytorch_study.fewer_bits import Grid, Running, Training, seconds_to, step_s, store
from serene.experiments.pytorch_study.one_process import OneProcess
from serene.program import Program
from tests.support.numbers import same
from tests.support.pools import PoolRun

LANES = 320


@pytest.mark.parametrize(
    ("workers", "bits", "feedback"),
    [*product([4], BITS, [False, True]), (1, 16, True), (1, 8, False), (32, 16, False), (32, 8, True)],
)
def test_one_process_exchange_equals_pool_all_reduce(bits: int, workers: int, feedback: bool) -> None:
    """Also for blocks of zeros, and for numbers so small or large that they are sent in 32 bits; the packet counts
    agree too."""
    switch, rng, length, steps = P4Switch(Program.load("serene")), np.random.default_rng(bits), 40 * LANES + 7, 3
    sizes = np.float32(10.0) ** rng.integers(-3, 3, size=length).astype(np.float32)
    sizes[: 16 * LANES] = 0
    sizes[16 * LANES : 32 * LANES] = 1e-41
    given = [[rng.normal(size=length).astype(np.float32) * sizes for _ in range(workers)] for _ in range(steps)]
    run, results = PoolRun(switch, workers, 8), [[vector.copy() for vector in step] for step in given]
    held = [np.zeros(length) if feedback else None for _ in range(workers)]

    def live(worker: int, pool: Pool) -> None:
        for step in results:
            pool.all_reduce(step[worker], bits=bits, residual=held[worker])

    run.play(live)
    assert not run.errors
    exchange = OneProcess(Layout(workers, LANES, bits), length, feedback=feedback)
    for step, vectors in zip(results, given, strict=True):
        assert same(exchange.all_reduce(vectors), step[0])


def test_one_process_exchange_counts_the_bytes_of_a_pool() -> None:
    switch, length = P4Switch(Program.load("serene")), 100 * LANES + 1
    for bits in BITS:
        run = PoolRun(switch, 2, 16)
        run.play(lambda worker, pool, bits=bits: pool.all_reduce(np.ones(length, np.float32), bits=bits))  # type: ignore[misc]
        frame = OneProcess(Layout(2, LANES, bits), 1).bytes_a_worker / 2
        assert OneProcess(Layout(2, LANES, bits), length).bytes_a_worker == frame * run.pools[0].counts.sent


def test_fewer_bits_grid_contains_every_combination_once() -> None:
    trainings = Grid().trainings()
    assert len(trainings) == len(set(map(str, trainings))) == 2 * 3 * 5 * 5
    assert {(each.workers, each.bits, each.feedback) for each in trainings} == {
        (workers, bits, feedback)
        for workers, bits, feedback in product((4, 8, 32), BITS, (False, True))
        if bits != 32 or not feedback
    }


def test_training_time_follows_from_share_and_bytes() -> None:
    results = {}
    for bits in BITS:
        exchange = OneProcess(Layout(4, LANES, bits), 206_922)
        looks = [[10, 0.5], [20, 0.81], [30, 0.7]]
        results[bits] = {"values": 206_922, "bytes": exchange.bytes_a_worker, "accuracies": looks}
    for share in fewer_bits.SHARES:
        steps = {bits: step_s(result, share) for bits, result in results.items()}
        computing = steps[32] * (1 - share)
        assert steps[32] == pytest.approx(206_922 * 32 / 1e8 / share, rel=0.09)  # headers and exponents
        for bits in (16, 8):
            assert steps[bits] - computing == pytest.approx(share * steps[32] * bits / 32, rel=0.03)
        assert seconds_to(results[8], 0.8, share) == 20 * steps[8]
        assert seconds_to(results[8], 0.9, share) == np.inf


def test_fewer_bits_row_summarises_all_seeds(tmp_path: Path) -> None:
    """Accuracies by mean and deviation, times by median; a run that missed the target sorts last."""
    grid, kept = Grid(("mlp",), (4,), (32,), (1, 2, 3), 30), store(tmp_path)
    looks = {1: [[10, 0.76], [30, 0.5]], 2: [[10, 0.5], [20, 0.77], [30, 0.6]], 3: [[30, 0.7]]}
    for training in grid.trainings():
        kept.keep(training, {"values": 79_510, "bytes": 10**6, "accuracies": looks[training.seed]})
    result = kept.get(grid.trainings()[0])
    assert result is not None
    (row,) = fewer_bits.report(grid, kept).splitlines()[2:]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:5] == ["mlp", "4", "32", "to nearest", "0.6000 ± 0.1000"]
    first = [f"{20 * step_s(result, share):.2f}" for share in fewer_bits.SHARES]
    assert cells[5:] == [first[0], "never", "never", first[1], "never", "never"]


def test_training_in_8_bits_reduces_the_loss() -> None:
    running = Running(Training("mlp", 4, 8, True, 1, 40))
    losses = [running.step() for _ in range(40)]
    assert np.mean(losses[-5:]) < 0.6 * losses[0]
    assert running.trainers[0].accuracy(1000) > 0.6
    assert len({trainer.digest() for trainer in running.trainers}) == 1


def test_fewer_bits_study_prints_estimate_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A combination that is named twice runs and counts once."""
    arguments = ["--out", str(tmp_path), "--models", "mlp", "--workers", "4", "4", "--steps", "3", "--seeds", "1", "1"]
    options, output = fewer_bits.parser().parse_args(arguments), io.StringIO()
    console = Console(file=output, width=200)
    fewer_bits.run(options, console)
    assert re.match(r"5 cells, 0 of them done already. The others will take (about|less than) ", output.getvalue())
    table = (tmp_path / "report.md").read_text()
    assert table.count("| mlp | 4 |") == 5 and "never" in table
    first, *_ = trainings = Grid(("mlp",), (4,), BITS, (1,), 3).trainings()
    path = store(tmp_path).path(first)
    path.write_text(path.read_text().replace(f'"version": {fewer_bits.VERSION}', '"version": 0'))
    assert store(tmp_path).missing(trainings) == [first], "earlier results are wrong"
    output.truncate(0)
    fewer_bits.run(options, console)
    assert "5 cells, 4 of them done already." in output.getvalue()
    assert (tmp_path / "report.md").read_text() == table
