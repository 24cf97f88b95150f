"""The documentation's site: it builds, its links resolve, and its generated parts match the code."""

from __future__ import annotations

import json
import re
import runpy
import sys
from pathlib import Path

import pytest
from finsy.proto import p4r
from typer.main import get_command

from serene.controller.automatic import Observation, WorkerView
from serene.controller.commands.cli import app
from serene.embedded.p4runtime.entities import Entities
from serene.strategy import BSP, SSP
from tests.commands import ROOT, output

PICTURES = runpy.run_path(str(ROOT / "scripts/draw_packets.py"))["PICTURES"]
pytest.importorskip("mkdocs", reason="needs MkDocs: pip install 'serene-p4[docs]'")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site. MkDocs itself refuses a link or an anchor that leads nowhere (mkdocs.yml), unless
    it runs quietly: then it does not count its warnings."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    output(*command, environment={"NO_MKDOCS_2_WARNING": "1"})
    return folder


def test_site_loads_no_external_resources(site: Path) -> None:
    """Pages must work without a network."""
    loads = r"<(?:script|img|iframe)[^>]*\ssrc=\"?(https?:[^\s\">]*)|<link[^>]*\bhref=\"?(https?:[^\s\">]*\.css)"
    assert {found for page in site.rglob("*.html") for found in re.findall(loads, page.read_text())} == set()


def test_site_renders_tables_and_lists(site: Path) -> None:
    """GitHub renders a table or list directly after a line of text, MkDocs does not."""
    code_and_tags = re.compile(r"<(code|pre|script|style)\b.*?</\1>|<[^>]*>", re.DOTALL)
    source = re.compile(r"^ *(?:\|.*\||- \w.*|\d\. \w.*|```.*)$", re.MULTILINE)
    wrong = {page.name: source.findall(code_and_tags.sub("", page.read_text())) for page in site.rglob("*.html")}
    assert {name: lines for name, lines in wrong.items() if lines} == {}


def test_site_search_index_covers_every_group_of_pages(site: Path) -> None:
    index = json.loads((site / "search/search_index.json").read_text())
    places = {document["location"].partition("#")[0] for document in index["docs"]}
    assert {"index.html", "tutorial/first-run.html", "runs.html", "protocol.html", "commands.html"} <= places


def test_commands_page_lists_every_command_and_option(site: Path) -> None:
    text = re.sub(r"<[^>]*>", "", (site / "commands.html").read_text())
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
    documented = {
        entity: (write != "no", read != "no")
        for entity, write, read in re.findall(r"^\| `(\w+)` \| ([\w, ]+) \| (\w+) \|", page, re.M)
    }
    kinds = [field.name for field in p4r.Entity.DESCRIPTOR.oneofs_by_name["entity"].fields]
    does = {kind: (hasattr(Entities, f"_write_{kind}"), hasattr(Entities, f"_read_{kind}")) for kind in kinds}
    assert documented == {kind: what for kind, what in does.items() if any(what)}


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
