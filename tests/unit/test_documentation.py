"""What pages and comments name exists: links, headings, files, make's targets, modules, serenectl's commands."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest
from typer.main import get_command

from controller.commands.cli import app

ROOT = Path(__file__).resolve().parents[2]
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
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)]*))?\)", page.read_text()):
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    """By their whole path, or by its end."""
    for named in re.findall(r"`([\w./-]+\.(?:py|p4|c|h|md|csv|txtpb|json))`", page.read_text()):
        if named not in {"my_strategy.py", "train_ddp.py"} and not named.startswith(("summary", "metrics", "times")):
            assert any(f"/{path}".endswith(f"/{named}") for path in FILES), named


def test_commands_that_pages_and_comments_name_exist() -> None:
    commands = getattr(get_command(app), "commands")  # noqa: B009 (of click's Group, which typer may bring itself)
    wrong = []
    for path in (*PAGES, *SOURCES):
        text = path.read_text()
        named = [f"make {target}" for target in re.findall(r"`make ([a-z][\w-]*)", text) if target not in TARGETS]
        modules = re.findall(r"python -m ((?:serene|controller|workers|experiments|tests)[\w.]*\w)", text)
        named += [module for module in modules if importlib.util.find_spec(module) is None]
        for first, second in re.findall(r"[`'/]serenectl ([a-z]+)(?: ([a-z]+))?", text):
            below = getattr(commands.get(first), "commands", None)
            if first not in commands or (second and below is not None and second not in below):
                named.append(f"serenectl {first} {second}")
        wrong += [f"{name(path)}: {command}" for command in named]
    assert wrong == []


def test_help_of_make_names_every_target() -> None:
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert TARGETS - {"help"} <= set(re.findall(r"^make ([\w-]+)", shown, re.MULTILINE))
