"""MkDocs hooks that add pages to the site which are not files in docs/.

README.md is the first page. CONTRIBUTING.md, CHANGELOG.md, and every source file that a page links to are pages, too.
So every link leads to a page of the site. `commands.md` is generated from the commands' help at each build.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import subprocess
import sys
from pathlib import Path

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page
from typer.cli import get_docs_for_click
from typer.main import get_command

from serene.controller.commands.cli import app

ROOT = Path(__file__).resolve().parents[1]
TOP = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
LANGUAGES = {".py": "python", ".json": "json", ".toml": "toml", ".c": "c", ".h": "c", ".p4": "c"}
MOST_BYTES = 200_000  # of a source file that becomes a page
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)

# Commands with argparse, and their modules. `serenectl` uses typer.
OTHERS = {
    "serene-switch": "serene.switch_command",
    "serene-shim": "serene.faults.shim",
    "serene-netstudy": "serene.experiments.network_study.question",
}


def commands() -> str:
    """The page of commands, generated from their help."""
    serenectl = get_docs_for_click(
        obj=get_command(app), ctx=typer.Context(get_command(app)), name="serenectl", indent=1
    )
    parts = ["# Commands", "These texts are the commands' own help, read when this page was built.", serenectl]
    for name, module in OTHERS.items():
        call = f"import sys; sys.argv = ['{name}', '--help']; from {module} import main; main()"
        environment = {**os.environ, "COLUMNS": "100"}
        shown = subprocess.run(
            [sys.executable, "-c", call], cwd=ROOT, capture_output=True, text=True, check=True, env=environment
        )
        parts.append(f"## `{name}`\n\n```text\n{shown.stdout.rstrip()}\n```")
    shown = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    parts.append(f"## `make`\n\n```text\n{shown.stdout.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def notebook(path: Path) -> str:
    """A Jupyter notebook as a page, with its stored outputs."""
    parts = []
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            if "text" in output:
                parts.append(f"```text\n{''.join(output['text']).rstrip()}\n```")
            elif image := output.get("data", {}).get("image/png"):
                parts.append(f"![The figure that this cell draws](data:image/png;base64,{''.join(image).strip()})")
    return "\n\n".join(parts) + "\n"


def source_page(path: Path) -> str:
    """A source file as a page. It is not searched: otherwise it would rank above the pages that explain it."""
    name = path.relative_to(ROOT)
    hidden = "---\nsearch:\n  exclude: true\n---\n\n"
    return f"{hidden}# `{name}`\n\n````{LANGUAGES.get(path.suffix, 'text')}\n{path.read_text().rstrip()}\n````\n"


def targets(text: str) -> list[str]:
    """The targets of a page's links, without images and code."""
    outside = [part for part in FENCE.split(text) if not part.startswith("```")]
    return [found[2] for part in outside for found in LINK.findall(part)]


def place(path: Path) -> str | None:
    """The site's path of a file of the repository; None if the site does not have it."""
    name = path.relative_to(ROOT).as_posix()
    if name in TOP:
        return TOP[name]
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    return f"{name}.md" if path.is_file() and path.stat().st_size <= MOST_BYTES else None


def home(src_uri: str) -> Path:
    """The folder in the repository that a page's links are relative to."""
    for name, uri in TOP.items():
        if uri == src_uri:
            return (ROOT / name).parent
    folder = ROOT / "docs" if (ROOT / "docs" / src_uri).exists() else ROOT
    return (folder / src_uri).parent


def on_files(files: Files, config: MkDocsConfig) -> Files:
    def add(uri: str, content: str, inclusion: InclusionLevel = InclusionLevel.INCLUDED) -> None:
        if files.get_file_from_path(uri) is None:
            files.append(File.generated(config, uri, content=content, inclusion=inclusion))

    texts = {uri: (ROOT / name).read_text() for name, uri in TOP.items()}
    for uri, text in texts.items():
        add(uri, text)
    add("commands.md", commands())
    texts |= {file.src_uri: file.content_string for file in files.documentation_pages()}
    for uri, text in texts.items():
        for target in targets(text):
            path = (home(uri) / target).resolve()
            there = place(path) if path.is_file() and path.is_relative_to(ROOT) else None
            if there is None or not there.endswith(".md") or files.get_file_from_path(there) is not None:
                continue
            if path.suffix == ".ipynb":
                add(there, notebook(path))
            else:
                add(there, source_page(path), InclusionLevel.NOT_IN_NAV)
    for file in files:
        if file.generated_by and file.src_uri not in {*TOP.values(), "commands.md"}:
            file.inclusion = (
                file.inclusion.__class__.NOT_IN_NAV if not file.src_uri.endswith(".ipynb.md") else file.inclusion
            )
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Converts links that are relative to the repository's folders to the site's. Links to files outside of the site
    become plain text."""
    own = page.file.src_uri

    def moved(found: re.Match[str]) -> str:
        image, label, target, anchor = found[1], found[2], found[3], found[4] or ""
        path = (home(own) / target).resolve()
        if not path.is_relative_to(ROOT) or not path.exists():
            return found[0]  # MkDocs will report a broken link
        there = place(path)
        if there is None or files.get_file_from_path(there) is None:
            return label
        return f"{image}[{label}]({posixpath.relpath(there, posixpath.dirname(own) or '.')}{anchor})"

    parts = FENCE.split(markdown)
    return "".join(part if part.startswith("```") else LINK.sub(moved, part) for part in parts)
