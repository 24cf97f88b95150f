"""The bytes in docs/switch-state.md are those of the program that p4c compiled."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/switch-state.md").read_text()
ROWS = {
    "the sum": ["sum"],
    "its snapshot": ["snapshot"],
    "totals": ["totals_of"],
    "era": ["era_of"],
    "base, waiting": ["base_of", "waiting_of"],
    "seen": ["seen_of"],
    "arrivals": ["arrivals_of"],
}


def bytes_per_slot(program: str) -> dict[str, int]:
    """Of each register of the program, the parts of one vector taken together."""
    arrays = json.loads((ROOT / f"p4src/build/{program}.json").read_text())["register_arrays"]
    slots = min(array["size"] for array in arrays)
    of: dict[str, int] = {}
    for array in arrays:
        name = re.sub(r"_\d+$", "", array["name"].split(".")[-1])
        of[name] = of.get(name, 0) + array["bitwidth"] * array["size"] // slots // 8
    return of


@pytest.mark.parametrize(("program", "column"), [("serene", 0), ("serene_jumbo", 1)])
def test_documented_bytes_per_slot_match_p4c_output(program: str, column: int) -> None:
    told = {
        row: [int(cell) for cell in cells]
        for row, *cells in re.findall(r"^\| ([\w, ]+) \| (\d+) \| (\d+) \|", PAGE, re.M)
    }
    of = bytes_per_slot(program)
    assert {row: told[row][column] for row in ROWS} == {row: sum(map(of.pop, names)) for row, names in ROWS.items()}
    assert not of, "registers that the page does not name"
    assert told["together"][column] == sum(bytes_per_slot(program).values())


def test_documented_mlp_memory_matches_p4c_output() -> None:
    slots = -(-79_510 // 320)
    assert f"{slots} slots, {slots * sum(bytes_per_slot('serene').values()):,} bytes" in PAGE
