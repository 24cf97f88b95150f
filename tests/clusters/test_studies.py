"""Cells of both studies on a dask cluster: the same results as on this machine, and only missing cells are run."""

from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from serene.arguments import Parser
from serene.errors import BadUsage
from serene.experiments.network_study.cells import Cell as Question
from serene.experiments.network_study.cells import ExchangeCell, NetworkCell, answer
from serene.experiments.network_study.cells import Store as Answers
from serene.experiments.shared import clusters, studies
from serene.experiments.shared.clusters import Cluster, MissingExtra
from serene.experiments.shared.driver import ClusterFailed
from serene.experiments.shared.studies import Failed, Group
from serene.experiments.straggler_study.cell import Cell, RackNetwork
from serene.experiments.straggler_study.simulated import simulate
from serene.experiments.straggler_study.sweep import sweep
from serene.experiments.straggler_study.trace import Store
from tests.ports import some_port

CELLS = [Cell(model="nothing", steps=3, seed=seed) for seed in range(1, 4)]
RACKS = Cell(model="nothing", steps=3, workers=6, racks=RackNetwork(2))
NOWHERE = Cell(model="mlp", dataset="mnist", steps=3)  # nobody has its pictures
QUESTIONS: list[Question] = [ExchangeCell(NetworkCell(2, 128), "ring", gradient_mb=size) for size in (1.0, 2.0)]


def quiet() -> Console:
    return Console(file=StringIO())


def test_cells_on_dask_give_the_same_results_as_here(dask: Cluster, tmp_path: Path) -> None:
    store, answers = Store(tmp_path / "cells"), Answers(tmp_path / "answers")
    assert sweep(CELLS[:2], store, quiet(), cluster=dask) == 2
    with pytest.raises(Failed, match=r"1 of 3 cells failed:\n.*DataError: .* \(on worker .*, process \d+\)"):
        sweep([*CELLS, RACKS, NOWHERE], store, quiet(), cluster=dask)
    studies.sweep([Group("simulations", QUESTIONS, answer, 1, dask)], answers, quiet())
    assert store.missing([*CELLS, RACKS, NOWHERE]) == [NOWHERE], "what is done stays, whatever fails"
    for cell in (CELLS[2], RACKS):
        found = store.get(cell)
        assert found is not None
        assert found.steps.tobytes() == simulate(cell).steps.tobytes()
    for question in QUESTIONS:
        known = answers.get(question)
        assert known is not None and known["seconds"] == question.answer()["seconds"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cluster", "head:8786"], r"--cluster head:8786: expected tcp://host:port of a dask scheduler, or slurm"),
        (["--cluster", "tcp://head"], "expected tcp://host:port"),
        (["--cluster", "tcp://head:99999"], r"--cluster tcp://head:99999: expected tcp://host:port"),
        (["--cluster", "tcp://[::1:8786"], "expected tcp://host:port"),
        (["--cluster-options", "file"], "options are for --cluster slurm"),
        (["--cluster", "slurm", "--cluster-options", "/nonesuch"], "/nonesuch: .*No such file"),
    ],
)
def test_impossible_cluster_options_are_refused(arguments: list[str], message: str) -> None:
    parser = Parser("")
    clusters.add_options(parser)
    with pytest.raises(BadUsage, match=message):
        clusters.chosen(parser.parse_args(arguments))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("at_one = 3", "option at_one of SLURM: expected folder, at_once, kind or submitit"),
        ("at_once = 0", "at_once 0 of SLURM: expected 1 or more"),
        ("at_once = true", "at_once True of SLURM: expected 1 or more"),
        ("folder = 5", "option folder 5 of SLURM: expected a path"),
        ('kind = "local"\nfolder = "a\\u0000b"', "embedded null byte"),
        ("submitit = 5", "option submitit 5 of SLURM: expected a table"),
        ("at_once = " + 5000 * "[" + 5000 * "]", "maximum recursion depth exceeded"),
        ('kind = "pbs"', "kind 'pbs' of SLURM: expected slurm or local"),
        ('kind = "local"\n[submitit]\nslurm_partitoin = "a"', "Unknown argument 'partitoin'"),
        ("", "Could not detect"),  # there is no SLURM in the tests
    ],
)
def test_impossible_slurm_options_are_refused(options: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "slurm.toml"
    path.write_text(options)
    with pytest.raises(BadUsage, match=message), Cluster("slurm", path).executor(1, tmp_path):
        pass


@pytest.mark.parametrize(("library", "where"), [("distributed", "tcp://127.0.0.1:8786"), ("submitit", "slurm")])
def test_missing_cluster_library_names_the_extra(library: str, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra, match=rf"needs .*{library}.*: pip install 'serene-p4\[cluster\]'"):
        Cluster(where).check()


def test_unreachable_dask_scheduler_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "PATIENCE_S", 1)
    address = f"tcp://127.0.0.1:{some_port()}"
    expected = pytest.raises(ClusterFailed, match=f"no dask scheduler answers at {address}")
    with expected, Cluster(address).executor(1, tmp_path):
        pass
