"""Results are stored by their settings, and damaged ones count as missing."""

from __future__ import annotations

import resource
import struct
import sys
import zipfile
from dataclasses import asdict, fields, replace
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from serene.controller.automatic import BadAutomatic, source, source_now
from serene.experiments.shared import machine
from serene.experiments.shared.store import Busy, CannotRead
from serene.experiments.straggler_study import cell as cell_module
from serene.experiments.straggler_study.cell import Cell, Network, RackNetwork
from serene.experiments.straggler_study.simulated import Simulation, simulate
from serene.experiments.straggler_study.sweep import run_cell
from serene.experiments.straggler_study.trace import BadTrace, Store, Trace

CELL = Cell(model="softmax", steps=4, straggler="slow_worker", strategy="ssp:1")
OTHERS = {
    "engine": "emulated", "workers": 3, "model": "cnn", "dataset": "mnist", "straggler": "none", "strategy": "asp",
    "seed": 9, "steps": 5, "compute_ms": 9.0, "learning_rate": 0.9, "eval_every": 9, "momentum": 0.9,
    "until": 0.9, "stands_for": 9, "batch_size": 9,
    "exchange": "gloo", "target": "bmv2", "packets": "scapy", "link_mbit": 9.0, "share": 0.9,
    "network": asdict(Network(9, 9, 9)), "racks": asdict(RackNetwork(2)),
}  # fmt: skip


def test_each_setting_changes_the_cells_digest() -> None:
    assert set(OTHERS) == {field.name for field in fields(Cell)}
    cells = [Cell.from_dict({**asdict(CELL), name: value}) for name, value in OTHERS.items()]
    digests = [CELL.digest, *(cell.digest for cell in cells)]
    assert len(set(digests)) == len(digests)
    assert replace(CELL).digest == CELL.digest


def test_digest_covers_the_program_of_an_automatic_strategy_without_its_comments(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"

    def digest(program: str) -> str:
        file.write_text(program)
        source.cache_clear()
        return replace(CELL, strategy=f"auto:{file}:Mine").digest

    program = 'from serene.strategy import SSP\ndef Mine(seen):\n    """Why."""\n    return SSP(1)\n'
    plain = digest(program)
    assert digest("# Mine.\n" + program.replace("Why", "Why not")) == plain
    assert digest(program.replace("SSP(1)", "SSP(2)")) != plain
    for wrong in ("def Mine(seen:\n", "\0", f"x = {'+'.join('1' * 900)}"):
        with pytest.raises(BadAutomatic, match=r"mine\.py: "):
            digest(wrong)


def test_digest_covers_the_rules_that_shipped_strategies_share() -> None:
    assert "def mean_loss" in source("saina") and "def mean_loss" not in source("pacing")


def test_digest_covers_the_users_modules_that_a_strategy_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that these import, packages' own programs, and editable installations, whose folder is not on the
    path; not Python's and installed modules, nor ours."""
    monkeypatch.syspath_prepend(tmp_path)
    bounds = tmp_path / "editable" / "bounds.py"

    class Finder(MetaPathFinder):
        def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
            return spec_from_file_location(name, bounds) if name == "bounds" else None

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])
    files = {
        "mine.py": "import numpy.random, json, serene.strategy, missing\nfrom parts import rule\n"
        "def Mine(seen):\n    import plain.folder.late\n",
        "parts/__init__.py": "from . import mine\n",
        "parts/rule.py": "import bounds\nfrom .inner.low import LOW\n",
        "parts/inner/__init__.py": "",
        "parts/inner/low.py": "from ..high import HIGH\nfrom ... import bounds\n",
        "parts/high.py": "HIGH = 1\n",
        "plain/folder/late.py": "",
        "editable/bounds.py": "import parts.rule\nHIGH = 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    def program() -> str:
        return source_now(f"{tmp_path}/mine.py:Mine")

    plain = program()
    assert plain.count("\n") < 20
    for name, text in list(files.items())[1:]:
        (tmp_path / name).write_text(text + "LOW = 2\n")
        assert program() != plain, name
        (tmp_path / name).write_text(text + "# a comment\n")
        assert program() == plain
    bounds.write_text("HIGH = \n")
    with pytest.raises(BadAutomatic, match=r"bounds\.py: invalid syntax"):
        program()


@pytest.mark.parametrize("model", ["mlp", "softmax", "nothing"])
def test_digest_covers_the_program_that_is_simulated(model: str) -> None:
    cell = replace(CELL, model=model)
    simulation = Simulation(cell)
    try:
        assert simulation.plane.program.name == cell.data_plane
    finally:
        simulation.plane.close()


def test_changed_program_changes_only_digests_of_cells_using_it(monkeypatch: pytest.MonkeyPatch) -> None:
    baseline = Cell(engine="emulated", exchange="server", link_mbit=10)
    cells = [replace(CELL, model="mlp"), CELL, replace(CELL, racks=RackNetwork(2)), baseline]
    before = [each.digest for each in cells]
    compiled = cell_module._compiled
    monkeypatch.setattr(
        cell_module, "_compiled", lambda name: "another one" if name == "serene_jumbo" else compiled(name)
    )
    assert [each.digest == known for each, known in zip(cells, before, strict=True)] == [False, True, True, True]


def test_stored_result_round_trips(tmp_path: Path) -> None:
    store, trace = Store(tmp_path), run_cell(None, CELL)
    assert store.get(CELL) is None
    store.keep(CELL, trace)
    found = store.get(CELL)
    assert found is not None
    assert found.cell == CELL
    assert found.steps.tobytes() == trace.steps.tobytes()
    assert np.array_equal(found.staleness, trace.staleness)
    assert (found.swaps, found.facts, found.conditions) == (trace.swaps, trace.facts, trace.conditions)
    assert found.conditions.machine == machine.here() and found.conditions.load_after is not None
    assert list(tmp_path.iterdir()) == [store.path(CELL)]


def test_damaged_results_count_as_missing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    simulate(CELL).save(store.path(CELL))
    whole = store.path(CELL).read_bytes()
    for broken in (b"", whole[: len(whole) // 2], b"PK" + whole[2:50], whole[:200] + bytes(100) + whole[300:]):
        store.path(CELL).write_bytes(broken)
        with pytest.raises(BadTrace, match=store.path(CELL).name):
            Trace.load(store.path(CELL))
        assert store.missing([CELL, CELL]) == [CELL]
        assert not store.path(CELL).exists()


def test_result_of_another_cell_counts_as_missing(tmp_path: Path) -> None:
    """A file that was copied or renamed: otherwise a strategy would have another one's times."""
    store, other = Store(tmp_path), replace(CELL, strategy="asp")
    simulate(other).save(store.path(CELL))
    assert store.missing([CELL]) == [CELL]
    assert not store.has(CELL)


@pytest.mark.parametrize("header", ["{", "{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999999,)}"])
def test_trace_with_a_damaged_header_is_refused(tmp_path: Path, header: str) -> None:
    with zipfile.ZipFile(tmp_path / "one.npz", "w") as parts:
        parts.writestr("head.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    with pytest.raises(BadTrace):
        Trace.load(tmp_path / "one.npz")


def test_trace_with_a_damaged_byte_is_refused_or_equal(tmp_path: Path) -> None:
    path, whole = tmp_path / "one.npz", simulate(CELL)
    whole.save(path)
    good, damaged = path.read_bytes(), 0
    for at in range(0, len(good), 7):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :])
        try:
            assert Trace.load(path).steps.tobytes() == whole.steps.tobytes()
        except BadTrace:
            damaged += 1
    assert damaged > len(good) / 14


def test_store_keeps_a_result_that_cannot_be_opened(tmp_path: Path) -> None:
    store = Store(tmp_path)
    simulate(CELL).save(store.path(CELL))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        with pytest.raises(CannotRead, match=f"cannot read {store.path(CELL)}: Too many open files"):
            store.get(CELL)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert store.get(CELL) is not None


def test_failed_save_leaves_no_file(tmp_path: Path) -> None:
    trace = simulate(CELL)
    with pytest.raises(Exception, match="pickle"):  # when a part of the file is written
        replace(trace, staleness=np.array([lambda: 0])).save(tmp_path / "x.npz")
    assert not list(tmp_path.iterdir())


def test_store_is_locked_and_removes_leftovers(tmp_path: Path) -> None:
    store = Store(tmp_path)
    (tmp_path / ".0123.npz.77").write_bytes(b"half")
    (tmp_path / ".cell-x").mkdir()
    (tmp_path / ".run-x").mkdir()  # a training's, where OUT=runs
    with store.alone():
        assert {path.name for path in tmp_path.iterdir()} == {".lock", ".run-x"}
        for _ in range(2):
            with pytest.raises(Busy, match="in use by another run"), Store(tmp_path).alone():
                pass
            with store.alone():  # as in a sweep of a command that locks it for several
                pass
    with Store(tmp_path).alone():
        pass
