"""Imports follow the data: experiments -> {workers, controller, topologies} -> serene. All are parts of `serene`."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.commands import ROOT, output

MAY_IMPORT = {
    "serene": set[str](),
    "workers": {"serene"},
    "controller": {"serene"},
    "topologies": {"serene"},
    "experiments": {"serene", "workers", "controller", "topologies"},
}


@cache
def imports_of(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """A module's import statements, wherever in it. Each is parsed once for all tests."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


def imported(folder: str) -> Iterator[tuple[Path, str]]:
    """Each module in the folder with what it imports: the folder in the repository that has it, or its top-level
    name."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in imports_of(path):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif node.level == 0:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                continue
            for name in names:
                top, below = (*name.split("."), "")[:2]
                if top in MAY_IMPORT and top != "serene":
                    yield path, f"{top}, not serene.{top}"
                else:
                    yield path, below if top == "serene" and below in MAY_IMPORT else top


@pytest.mark.parametrize("folder", [*MAY_IMPORT, "tests", "scripts", "examples"])
def test_modules_are_imported_only_as_parts_of_serene(folder: str) -> None:
    """A module imported under two names is loaded twice, and users may have a `controller` of their own."""
    assert [f"{path} imports {name}" for path, name in imported(folder) if ", not " in name] == []


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_packages_import_only_lower_layers(package: str) -> None:
    ours = {*MAY_IMPORT, "tests"}
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path, name in imported(package)
        if name in ours - MAY_IMPORT[package] - {package}
    ]
    assert wrong == []


ROOMS = {
    "client": ("protocol", "compiled", "transport", "session", "allreduce"),
    "embedded": ("program", "codegen", "control", "trace", "engine", "p4runtime", "command"),
}


@pytest.mark.parametrize("house", ROOMS)
def test_subpackages_import_only_lower_subpackages(house: str) -> None:
    """The lowest subpackage is named first. Only the package's `__init__` may import from all of them."""
    known, rooms = modules(), ROOMS[house]
    inside = {name: name.split(".")[2] for name in known if name.startswith(f"serene.{house}.")}
    assert set(inside.values()) == set(rooms)
    assert [
        f"{known[name].relative_to(ROOT)} imports {other}"
        for name, room in inside.items()
        for other in needed(known[name], known)
        if other == f"serene.{house}" or (other in inside and rooms.index(inside[other]) > rooms.index(room))
    ] == []


def test_topologies_import_only_what_debians_python_has() -> None:
    """That Python has only Debian's packages, so topologies use only the parts of serene that need no others."""
    known, ours = {"topologies", "mininet", *sys.stdlib_module_names}, modules()
    alone = {"serene.process.interrupts", "serene.process.locks"}
    assert {name for _, name in imported("topologies")} <= known | {"serene"}
    assert {each for path in (ROOT / "topologies").rglob("*.py") for each in needed(path, ours)} <= alone | {
        name for name in ours if name.startswith("serene.topologies")
    }
    assert {name for path, name in imported("serene") if path in [ours[each] for each in alone]} <= known


def modules() -> dict[str, Path]:
    found = {}
    for package in MAY_IMPORT:
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            parts = parts if package == "serene" else ("serene", *parts)
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def needed(path: Path, known: Mapping[str, Path]) -> set[str]:
    """The modules of ours that a module imports, wherever in it and whatever for."""
    found = set()
    for node in imports_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif node.module is not None:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names & known.keys() or {node.module}
    return found & known.keys()


def test_tests_do_not_import_from_other_tests() -> None:
    """Shared code is in a module of its own. Only the tests that Tofino shares with v1model are imported."""
    found = [
        f"{path.relative_to(ROOT)} imports {node.module}"
        for path in (ROOT / "tests").rglob("*.py")
        for node in imports_of(path)
        if isinstance(node, ast.ImportFrom) and str(node.module).rpartition(".")[2].startswith("test_")
    ]
    shared = ("test_admission", "test_forwarding", "test_protocol")
    mine = {f"tests/tofino/test_dataplane.py imports tests.dataplane.{name}" for name in shared}
    assert set(found) == mine


def test_imports_contain_no_cycles() -> None:
    """Neither through other modules, nor for type annotations alone."""
    known = modules()
    needs = {name: needed(path, known) - {name} for name, path in known.items()}
    TopologicalSorter(needs).prepare()  # raises an error that names a cycle


def test_commands_start_without_importing_heavy_packages() -> None:
    """These are the operator's commands, and those that start other processes."""
    programs = (
        "serene.controller.commands.cli, serene.embedded.command.cli, serene.experiments.run.cli, "
        "serene.experiments.straggler_study.__main__"
    )
    asked = f"import sys, {programs}; print(sorted({{'torch', 'sklearn', 'matplotlib'}} & {{*sys.modules}}))"
    assert output(sys.executable, "-c", asked) == "[]\n"


def test_one_machine_measurement_does_not_import_mininet() -> None:
    asked = "import sys; sys.modules['mininet'] = None; import serene.experiments.performance.one_machine"
    output(sys.executable, "-c", asked)
