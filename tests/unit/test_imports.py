"""Imports follow the data: experiments -> {workers, controller, topologies} -> serene."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAY_IMPORT = {
    "serene": set[str](),
    "workers": {"serene"},
    "controller": {"serene"},
    "topologies": set[str](),
    "experiments": {"serene", "workers", "controller", "topologies"},
}


def imported(package: str) -> Iterator[tuple[Path, str]]:
    """Each module of the package with the top level names that it imports, wherever in it."""
    for path in sorted((ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from ((path, alias.name.partition(".")[0]) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                yield path, str(node.module).partition(".")[0]


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_package_imports_only_what_lies_below_it(package: str) -> None:
    ours = {*MAY_IMPORT, "tests"}
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path, name in imported(package)
        if name in ours - MAY_IMPORT[package] - {package}
    ]
    assert wrong == []


def test_topologies_run_under_mininets_own_python() -> None:
    known = {"topologies", "mininet", *sys.stdlib_module_names}
    assert {name for _, name in imported("topologies")} <= known
