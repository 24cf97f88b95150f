"""The documentation's site: it builds, its links resolve, and its generated parts match the code."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from finsy.proto import p4r
from typer.main import get_command

from serene.controller.automatic import Observation, WorkerView
from serene.controller.commands.cli import app
from serene.embedded.p4runtime.entities import Entities
from serene.strategy import BSP, SSP

ROOT = Path(__file__).resolve().parents[2]
PICTURES = runpy.run_path(str(ROOT / "scripts/draw_packets.py"))["PICTURES"]
pytest.importorskip("mkdocs", reason="needs MkDocs: pip install 'serene-p4[docs]'")


class Html(HTMLParser):
    """A page's links, anchors and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.text: list[str] = []
        self._code = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._code += tag in ("code", "pre", "script", "style")
        for name, value in attributes:
            if name == "id" and value:
                self.anchors.add(value)
            if name in ("href", "src") and value:
                self.links.append(value)

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag in ("code", "pre", "script", "style")

    def handle_data(self, data: str) -> None:
        if not self._code:
            self.text.append(data)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Html]:
    folder = tmp_path_factory.mktemp("site").resolve()
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {page: Html(page.read_text()) for page in sorted(folder.rglob("*.html"))}


def test_site_links_resolve(site: dict[Path, Html]) -> None:
    wrong = []
    for page, html in site.items():
        for link in html.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or page.name == "404.html":
                continue
            there = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            there = there / "index.html" if there.is_dir() else there
            anchors = site[there].anchors if there in site else set()
            if not there.exists() or (parts.fragment and there in site and unquote(parts.fragment) not in anchors):
                wrong.append(f"{page.name}: {link}")
    assert wrong == []


def test_site_loads_no_external_resources(site: dict[Path, Html]) -> None:
    """Pages must work without a network."""
    loads = r"<(?:script|img|iframe)[^>]*\ssrc=\"?(https?:[^\s\">]*)|<link[^>]*\bhref=\"?(https?:[^\s\">]*\.css)"
    assert {found for page in site for found in re.findall(loads, page.read_text())} == set()


def test_site_renders_tables_and_lists(site: dict[Path, Html]) -> None:
    """GitHub renders a table or list directly after a line of text, MkDocs does not."""
    wrong = []
    for page, html in site.items():
        text = "".join(html.text)
        wrong += [
            f"{page.name}: {line}" for line in re.findall(r"^ *(?:\|.*\||- \w.*|\d\. \w.*|```.*)$", text, re.MULTILINE)
        ]
    assert wrong == []


def test_site_search_index_covers_every_group_of_pages(site: dict[Path, Html]) -> None:
    index = json.loads((next(iter(site)).parent / "search/search_index.json").read_text())
    places = {document["location"].partition("#")[0] for document in index["docs"]}
    assert {"index.html", "tutorial/first-run.html", "runs.html", "protocol.html", "commands.html"} <= places


def test_commands_page_lists_every_command_and_option(site: dict[Path, Html]) -> None:
    folder = next(iter(site)).parent
    text = re.sub(r"<[^>]*>", "", (folder / "commands.html").read_text())
    commands = getattr(get_command(app), "commands")  # noqa: B009 (of click's Group, which typer may bring itself)
    for name, command in commands.items():
        assert f"serenectl {name}" in text
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert parameter.opts[0] in text, (name, parameter.opts)
    for other in ("serene-switch", "serene-shim", "serene-netstudy", "make run-mininet"):
        assert other in text


def test_readme_has_at_most_900_words() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 900


@pytest.mark.parametrize("name", PICTURES)
def test_drawn_packet_and_slot_match_the_code(name: str) -> None:
    drawn = (ROOT / "docs/images" / name).read_text()
    assert drawn == PICTURES[name](), "python scripts/draw_packets.py draws it again"


def test_documented_p4runtime_entities_match_the_server() -> None:
    page = (ROOT / "docs/p4runtime.md").read_text()
    told = {
        entity: (write != "no", read != "no")
        for entity, write, read in re.findall(r"^\| `(\w+)` \| ([\w, ]+) \| (\w+) \|", page, re.M)
    }
    kinds = [field.name for field in p4r.Entity.DESCRIPTOR.oneofs_by_name["entity"].fields]
    does = {kind: (hasattr(Entities, f"_write_{kind}"), hasattr(Entities, f"_read_{kind}")) for kind in kinds}
    assert told == {kind: what for kind, what in does.items() if any(what)}


@pytest.mark.parametrize(("page", "program"), [("own-training", "loop"), ("own-strategy", "bridge")])
def test_tutorial_programs_match_the_examples(page: str, program: str) -> None:
    text = (ROOT / f"docs/tutorial/{page}.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    assert all(block in (ROOT / f"examples/{program}.py").read_text() for block in blocks)


def test_tutorial_strategy_decides_as_described() -> None:
    bridge = runpy.run_path(str(ROOT / "examples/bridge.py"))["Bridge"]()

    def seen(slowest_s: float | None) -> Observation:
        view = WorkerView(0, True, 5, 0.0, 0.3, 0.25, slowest_s, slowest_s, 0.1, None)
        return Observation(1.0, 1, 1.0, BSP(), [view])

    strategies = [getattr(bridge.decide(seen(slowest_s)), "strategy", None) for slowest_s in (None, 0.3, 0.6)]
    assert strategies == [None, BSP(), SSP(3)]


def test_notebook_reproduces_its_stored_outputs() -> None:
    """Times are virtual, so they are the same on all machines; accuracies agree within rounding."""
    run = runpy.run_path(str(ROOT / "scripts/run_notebook.py"))["run"]
    notebook = json.loads((ROOT / "examples/stragglers.ipynb").read_text())
    stored = ["".join(output.get("text", "")) for cell in notebook["cells"] for output in cell.get("outputs", [])]
    now = ["".join(output.get("text", "")) for _, outputs in run(notebook) for output in outputs]
    assert len(stored) == len(now) == 6
    for before, after in zip(stored, now, strict=True):
        words = [re.findall(r"[-\d.]*\d|[^\d\s]+", text) for text in (before, after)]
        assert len(words[0]) == len(words[1])
        for first, second in zip(*words, strict=True):
            if re.fullmatch(r"[-\d.]*\d", first):
                assert float(second) == pytest.approx(float(first), abs=0.02)
            else:
                assert first == second
