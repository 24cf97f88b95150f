"""The number of slots is a setting: the compiled program shows which registers it sizes."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from serene.process.memory import free_bytes
from serene.program import BUILD, NoSuchProgram, Program
from serene.slots import NotBySlot, SlotState, resized

PROGRAMS = ("serene", "serene_jumbo", "serene_leaf", "serene_root")


def program(name: str) -> Program:
    return Program.load(BUILD / f"{name}.json")


def declared(name: str) -> dict[str, int]:
    """The registers whose size in the P4 sources is SLOTS, or a multiple of it: cells a slot, by the last part of the
    name, without the number of a part of a vector."""
    sources = BUILD.parent / "v1model"
    sizes = {"MAX_WORKERS": 32, "RING": 16, "LEAVES": 8}
    found: dict[str, int] = {}
    todo, done = [f"{name.removesuffix('_jumbo')}.p4"], set[Path]()
    while todo:
        path = sources / todo.pop()
        if path in done or not path.exists():
            continue
        done.add(path)
        text = path.read_text()
        todo += re.findall(r'#include "([\w.]+)"', text)
        for size, register in re.findall(r"register<[^;]*?>\(SLOTS(?: \* (\w+))?\) (\w+)", text):
            found[register.rstrip("_")] = sizes[size] if size else 1
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_slot_registers_match_the_p4_declarations(name: str) -> None:
    state = SlotState.of(json.loads(program(name).config_path.read_text()))
    found = {re.sub(r"_\d+$", "", register.name.split(".")[-1]): register.cells for register in state.registers}
    assert found == declared(name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_with_slots_changes_only_register_sizes(name: str) -> None:
    compiled, larger = program(name), program(name).with_slots(35_000)
    before, after = json.loads(compiled.config), json.loads(larger.config)
    changed = {
        one["name"]: (one["size"] / 8192, other["size"] / 35_000)
        for one, other in zip(before["register_arrays"], after["register_arrays"], strict=True)
        if one != other
    }
    assert all(was == now for was, now in changed.values())
    for one in before["register_arrays"]:
        one["size"] = 0
    for one in after["register_arrays"]:
        one["size"] = 0
    assert before == after
    lines = zip(compiled.p4info.splitlines(), larger.p4info.splitlines(), strict=True)
    sizes = [(one, other) for one, other in lines if one != other]
    assert len(sizes) == len(changed)
    assert all(int(one.split()[1]) / 8192 == int(other.split()[1]) / 35_000 for one, other in sizes)


def spoiled(change: Callable[[dict[str, Any]], object]) -> bytes:
    made = json.loads(program("serene").config)
    change(made)
    return json.dumps(made).encode()


def test_with_slots_refuses_a_register_with_partial_cells_per_slot() -> None:
    def change(made: dict[str, Any]) -> None:
        next(one for one in made["register_arrays"] if one["name"].endswith("seen_of"))["size"] += 1

    with pytest.raises(
        NotBySlot, match=r"register SereneIngress.barrier.seen_of is indexed by slot and has 262145 cells"
    ):
        resized(spoiled(change), 10)


def test_slots_are_found_through_several_assigned_fields() -> None:
    def field(name: str) -> dict[str, Any]:
        return {"type": "field", "value": ["meta", name]}

    first = {"type": "runtime_data", "value": 0}
    register = {"type": "register_array", "value": "sums"}
    steps = [("c", field("b")), ("b", field("a")), ("a", first)]
    primitives = [{"op": "assign", "parameters": [field(to), value]} for to, value in steps]
    primitives.append({"op": "register_write", "parameters": [register, field("c"), field("b")]})
    action = {"runtime_data": [{"name": "first_slot"}], "primitives": primitives}
    state = SlotState.of(
        {"actions": [action], "register_arrays": [{"name": "sums", "size": 16, "bitwidth": 32}]},
    )
    assert (state.slots, [each.name for each in state.registers]) == (16, ["sums"])


def test_with_slots_refuses_a_program_without_slots() -> None:
    def change(made: dict[str, Any]) -> None:
        for action in made["actions"]:
            for parameter in action["runtime_data"]:
                parameter["name"] = parameter["name"].replace("first_slot", "from")

    with pytest.raises(NotBySlot, match="no register of the program has an index that is computed from first_slot"):
        resized(spoiled(change), 10)


def test_chip_program_refuses_another_slot_count(tmp_path: Path) -> None:
    (tmp_path / "chip.bin").write_bytes(b"...")
    shutil.copy(BUILD / "serene.p4info.txtpb", tmp_path / "chip.p4info.txtpb")
    chip = Program.load(tmp_path / "chip.bin")
    assert chip.with_slots(8192) is chip
    with pytest.raises(NoSuchProgram, match=r"10 slots: chip\.bin was compiled with 8192"):
        chip.with_slots(10)


def test_free_memory_is_the_minimum_of_machine_and_cgroup(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  2000 kB\nMemAvailable:  1000 kB\n")
    assert free_bytes(meminfo, tmp_path) == 1_024_000
    (tmp_path / "memory.max").write_text("600000\n")
    (tmp_path / "memory.current").write_text("500000\n")
    (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 300000\n")
    assert free_bytes(meminfo, tmp_path) == 400_000
    (tmp_path / "memory.max").write_text("max\n")
    assert free_bytes(meminfo, tmp_path) == 1_024_000
    assert free_bytes(tmp_path / "none", tmp_path) is None


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
    documented = {
        row: [int(cell) for cell in cells]
        for row, *cells in re.findall(r"^\| ([\w, ]+) \| (\d+) \| (\d+) \|", PAGE, re.M)
    }
    of = bytes_per_slot(program)
    assert {row: documented[row][column] for row in ROWS} == {
        row: sum(map(of.pop, names)) for row, names in ROWS.items()
    }
    assert not of, "registers that the page does not name"
    assert documented["together"][column] == sum(bytes_per_slot(program).values())


def test_documented_mlp_memory_matches_p4c_output() -> None:
    slots = -(-79_510 // 320)
    assert f"{slots} slots, {slots * sum(bytes_per_slot('serene').values()):,} bytes" in PAGE
