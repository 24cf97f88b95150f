"""Draws docs/images/packet.svg and slot.svg from the code. `python scripts/draw_packets.py` writes both.

The packet's fields are in serene/wire.py, the slot's registers in p4c's output.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.sax.saxutils import escape

from serene.program import BUILD, Program
from serene.wire import MEMBERSHIP_FIELDS, SERENE_FIELDS

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
WIDTH, MARGIN, ROW = 480, 10, 30
COLOURS = {"outer": "#eceff1", "serene": "#b2dfdb", "membership": "#ffe0b2", "values": "#c5cae9", "state": "#dcedc8"}
OUTER = (("Ethernet", 14), ("IPv4", 20), ("UDP, to port 24142", 8))


class Picture:
    """Rows of boxes with texts."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._y = MARGIN

    def row(self, boxes: list[tuple[float, str, str]], height: int = ROW) -> None:
        """Adds a row. boxes: share of the width (0 to 1), text and colour of each."""
        x, whole = float(MARGIN), WIDTH - 2 * MARGIN
        for share, text, colour in boxes:
            width = share * whole
            size = min(14.0, 1.6 * width / max(len(text), 1))
            self._parts.append(
                f'<rect x="{x:.1f}" y="{self._y}" width="{width:.1f}" height="{height}" fill="{COLOURS[colour]}" '
                'stroke="#37474f"/>'
                f'<text x="{x + width / 2:.1f}" y="{self._y + height / 2 + 5:.1f}" font-size="{size:.1f}" '
                f'text-anchor="middle">{escape(text)}</text>'
            )
            x += width
        self._y += height

    def line(self, text: str) -> None:
        self._y += 20
        self._parts.append(f'<text x="{MARGIN}" y="{self._y}" font-size="14" font-weight="bold">{escape(text)}</text>')
        self._y += 8

    def svg(self, title: str) -> str:
        height = self._y + MARGIN
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            'font-family="sans-serif" role="img">\n'
            f"<title>{escape(title)}</title>\n"
            f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n' + "\n".join(self._parts) + "\n</svg>\n"
        )


def _words(picture: Picture, fields: tuple[tuple[str, int], ...], colour: str) -> None:
    """Fields in rows of four bytes."""
    row: list[tuple[float, str, str]] = []
    for name, size in fields:
        row.append((size / 4, name, colour))
        if sum(share for share, _, _ in row) == 1:
            picture.row(row)
            row = []


def packet() -> str:
    picture = Picture()
    picture.line("A frame (in the coloured parts, a row is 4 bytes)")
    for name, size in OUTER:
        picture.row([(1, f"{name}: {size} bytes", "outer")], 24)
    picture.line("serene: 40 bytes, in every packet")
    _words(picture, SERENE_FIELDS, "serene")
    picture.line("membership: 20 bytes, in HELLO and WELCOME")
    _words(picture, MEMBERSHIP_FIELDS, "membership")
    lanes = Program.load().lanes
    picture.line(f"values: {4 * lanes:,} bytes, in PUSH, PULL and ANSWER")
    for lane in ("lane 0", "lane 1", "..."):
        picture.row([(1, lane if lane == "..." else f"{lane}: int32, fixed point", "values")], 24)
    picture.row([(1, f"lane {lanes - 1}", "values")], 24)
    return picture.svg("Fields of a Serene packet")


def registers() -> dict[str, tuple[int, int]]:
    """Bits of a cell and cells of a slot, for each register array of the program. Parts of one vector are merged."""
    arrays = json.loads((BUILD / "serene.json").read_text())["register_arrays"]
    slots = Program.load().slots
    of: dict[str, tuple[int, int]] = {}
    for array in arrays:
        name = re.sub(r"_\d+$", "", array["name"].rpartition(".")[2])
        bits, cells = of.get(name, (array["bitwidth"], 0))
        of[name] = bits, cells + array["size"] // slots
    return of


def slot() -> str:
    state, program = registers(), Program.load()

    def bits(name: str) -> int:
        return state[name][0] * state[name][1]

    picture = Picture()
    picture.line("The values: what workers have contributed")
    for name in ("sum", "snapshot"):
        lanes = bits(name) // 32
        picture.row([(1 / 4, f"{name}[0]", "values"), (1 / 4, f"{name}[1]", "values"), (1 / 4, "...", "values"),
                     (1 / 4, f"{name}[{lanes - 1}]", "values")])  # fmt: skip
    picture.line(f"totals_of: {bits('totals_of')} bits; era_of: {bits('era_of')} bits")
    picture.row([(1 / 2, "contributions in sum", "state"), (1 / 2, "in snapshot", "state")])
    picture.row([(1 / 2, "session", "state"), (1 / 2, "epoch", "state")])
    picture.line(f"base_of: {bits('base_of')} bits; waiting_of: {bits('waiting_of')} bits")
    picture.row([(1 / 2, "rounds complete", "state"), (1 / 2, "a bit for each waiting worker", "state")])
    picture.line(f"seen_of: {state['seen_of'][0]} bits for each of {program.max_workers} workers")
    for worker in ("0", "1"):
        picture.row([(1 / 2, f"worker {worker}: session", "state"), (1 / 2, "highest seq accepted", "state")], 24)
    picture.row([(1, "...", "state")], 20)
    size, cells = state["arrivals_of"]
    picture.line(f"arrivals_of: {size} bits for each of {cells} rounds")
    for number in ("0", "1"):
        picture.row([(1 / 4, f"{number}: session", "state"), (1 / 4, "epoch", "state"), (1 / 4, "round", "state"),
                     (1 / 4, "arrivals", "state")], 24)  # fmt: skip
    picture.row([(1, "...", "state")], 20)
    total = sum(map(bits, state)) // 8
    picture.line(f"Together {total:,} bytes a slot; the switch has {program.slots:,} slots")
    return picture.svg("The state of one slot")


PICTURES = {"packet.svg": packet, "slot.svg": slot}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (IMAGES / name).write_text(draw())
