"""Links, headings, files, make's targets, modules and commands that pages and comments name exist."""

from __future__ import annotations

import importlib.util
import re
from importlib import metadata
from pathlib import Path

import pytest
from typer.main import get_command

from serene import distribution
from serene.controller.commands.cli import app
from tests.commands import ROOT, output

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
SOURCES = sorted(path for folder in ("serene", "controller", "workers", "experiments", "topologies", "scripts", "tests")
                 for path in (ROOT / folder).rglob("*.py"))  # fmt: skip
TARGETS = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
FILES = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if not {".git", ".venv", "runs"} & set(path.parts)]


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_in_pages_resolve(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)]*))?\)", page.read_text()):
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_named_in_pages_exist(page: Path) -> None:
    """A page names a file by its whole path or by the path's end."""
    for named in re.findall(r"`([\w./-]+\.(?:py|p4|c|h|md|csv|txtpb|json))`", page.read_text()):
        if named not in {"my_strategy.py", "train_ddp.py", "distributed_test.py"} and not named.startswith(
            ("summary", "metrics", "times")
        ):
            assert any(f"/{path}".endswith(f"/{named}") for path in FILES), named


def test_commands_named_in_pages_and_comments_exist() -> None:
    commands = getattr(get_command(app), "commands")  # noqa: B009 (of click's Group, which typer may bring itself)
    wrong = []
    for path in (*PAGES, *SOURCES):
        text = path.read_text()
        named = [f"make {target}" for target in re.findall(r"`make ([a-z][\w-]*)", text) if target not in TARGETS]
        modules = re.findall(r"python -m ((?:serene|controller|workers|experiments|tests)[\w.]*\w)", text)
        ours = ("serene", "tests")  # the other folders are parts of serene
        named += [each for each in modules if not each.startswith(ours) or importlib.util.find_spec(each) is None]
        for first, second in re.findall(r"[`'/]serenectl ([a-z]+)(?: ([a-z]+))?", text):
            below = getattr(commands.get(first), "commands", None)
            if first not in commands or (second and below is not None and second not in below):
                named.append(f"serenectl {first} {second}")
        wrong += [f"{name(path)}: {command}" for command in named]
    assert wrong == []


def test_docs_recommend_only_our_or_pinned_packages() -> None:
    """On PyPI, `serene` is another project."""
    extras = {None, *(metadata.metadata(distribution.NAME).get_all("Provides-Extra") or ())}
    known = set(re.findall(r"^([\w-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    known |= {f"{distribution.NAME}[{extra}]" if extra else distribution.NAME for extra in extras}
    wrong = []
    for path in (*PAGES, *SOURCES, ROOT / "pyproject.toml"):
        text = path.read_text()
        named = re.findall(r"pip3? install (?:-\S+ )*['\"]?([A-Za-z][\w.-]*(?:\\?\[\w+\\?\])?)", text)
        named += re.findall(r"\bserene[\w-]*\[\w+\]", text)
        named += [f"{distribution.NAME}[{extra}]" for extra in re.findall(r"to_install\([\"'](\w+)", text)]
        wrong += [f"{name(path)}: {package}" for package in named if package.replace("\\", "") not in known]
    assert wrong == []


def test_make_help_lists_every_target() -> None:
    shown = output("make", "help")
    assert TARGETS - {"help"} <= set(re.findall(r"^make ([\w-]+)", shown, re.MULTILINE))
