"""``python -m serene.dissector > serene.lua``: a dissector for Wireshark, generated from scapy's layers (layers.py).

    tshark -X lua_script:serene.lua -r captures/s1-eth1_in.pcap -V

Wireshark itself loads it from its folder of personal Lua plugins.
"""

from __future__ import annotations

from serene.interrupts import end_quietly

if __name__ == "__main__":
    end_quietly()

import json
from collections.abc import Iterator
from typing import Any

from serene.layers import Membership, Serene, Values
from serene.wire import SERENE_UDP_PORT

LUA = """\
-- Serene's packets. Made by python -m serene.dissector: change serene/layers.py instead.
local serene = Proto("serene", "Serene")
local names, fields, layouts = {{}}, {{}}, {{}}
{fields}
local value = ProtoField.int32("serene.value", "value", base.DEC)
local body = ProtoField.bytes("serene.body", "body")
fields[#fields + 1], fields[#fields + 2] = value, body
serene.fields = fields

-- What follows the header, by op.
local members, values = {{ {members} }}, {{ {values} }}

local function add(layout, buffer, at, tree)
    for _, each in ipairs(layout) do
        tree:add(each.field, buffer(at, each.size))
        at = at + each.size
    end
    return at
end

function serene.dissector(buffer, packet, root)
    local length = buffer:len()
    if length < {header_bytes} then return 0 end
    local op = buffer({op_at}, 1):uint()
    packet.cols.protocol = "Serene"
    packet.cols.info = string.format("%s job %d worker %d seq %d slot %d", names.op[op] or op,
        {info})
    local tree = root:add(serene, buffer())
    local at = add(layouts.header, buffer, 0, tree)
    if members[op] and length >= at + {membership_bytes} then at = add(layouts.membership, buffer, at, tree) end
    if values[op] and length >= at + 4 then
        local count = math.floor((length - at) / 4)
        local all = tree:add(serene, buffer(at, 4 * count), count .. " values")
        for _ = 1, count do
            all:add(value, buffer(at, 4))
            at = at + 4
        end
    end
    if at < length then tree:add(body, buffer(at)) end
    return length
end

DissectorTable.get("udp.port"):add({port}, serene)
"""


def lua() -> str:
    """The dissector's source."""
    followers = {int(wanted["op"]): layer for wanted, layer in Serene.payload_guess}
    at = dict(_places(Serene))
    return LUA.format(
        fields="\n".join([*_layout("header", Serene), *_layout("membership", Membership)]),
        members=_set(op for op, layer in followers.items() if layer is Membership),
        values=_set(op for op, layer in followers.items() if layer is Values),
        header_bytes=len(Serene()),
        membership_bytes=len(Membership()),
        op_at=at["op"],
        info=", ".join(f"buffer({at[each.name]}, {each.sz}):uint()" for each in _shown()),
        port=SERENE_UDP_PORT,
    )


def _shown() -> list[Any]:
    by_name = {each.name: each for each in Serene.fields_desc}
    return [by_name[name] for name in ("job", "worker", "seq", "slot")]


def _places(layer: Any) -> Iterator[tuple[str, int]]:
    at = 0
    for each in layer.fields_desc:
        yield each.name, at
        at += each.sz


def _layout(name: str, layer: Any) -> Iterator[str]:
    """A Lua table of a layer's fields with their sizes, and the names of their values."""
    yield f"layouts.{name} = {{}}"
    for each in layer.fields_desc:
        said = ""
        if values := getattr(each, "i2s", None):
            pairs = ", ".join(f"[{key}] = {json.dumps(text)}" for key, text in values.items())
            yield f"names.{each.name} = {{ {pairs} }}"
            said = f", names.{each.name}"
        made = f'ProtoField.uint{8 * each.sz}("serene.{each.name}", "{each.name}", base.DEC{said})'
        yield f"fields[#fields + 1] = {made}"
        yield f"table.insert(layouts.{name}, {{ field = fields[#fields], size = {each.sz} }})"


def _set(ops: Iterator[int]) -> str:
    return ", ".join(f"[{op}] = true" for op in ops)


if __name__ == "__main__":
    print(lua(), end="")
