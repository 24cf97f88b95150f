"""P4 types of digests and registers, as the P4Info gives them, and values of those types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from finsy.proto import p4d, p4t

from serene.switch.p4runtime.values import encode

LEAVES = 4096  # numbers in one type

Structs = Mapping[str, p4t.P4StructTypeSpec]


def leaf_widths(spec: p4t.P4DataTypeSpec, structs: Structs, depth: int = 16) -> list[int] | None:
    """The widths of the numbers in a P4 type, in order; None if it holds anything but bits and bools, or is nested
    deeper than ``depth`` (a P4Info may claim that a type contains itself)."""
    if not depth:
        return None
    kind = spec.WhichOneof("type_spec")
    if kind == "bool":
        return [1]
    if kind == "bitstring" and spec.bitstring.HasField("bit"):
        return [spec.bitstring.bit.bitwidth]
    if kind in ("struct", "tuple"):
        widths: list[int] = []
        for member in _members(spec, structs):
            inner = leaf_widths(member, structs, depth - 1)
            if inner is None or len(widths) + len(inner) > LEAVES:
                return None
            widths += inner
        return widths
    return None


def structured(spec: p4t.P4DataTypeSpec, structs: Structs, values: Iterator[int]) -> p4d.P4Data:
    """Numbers as a value of a P4 type that has ``leaf_widths``."""
    kind = spec.WhichOneof("type_spec")
    if kind == "bool":
        return p4d.P4Data(bool=bool(next(values)))
    if kind == "bitstring":
        return p4d.P4Data(bitstring=encode(next(values)))
    members = p4d.P4StructLike(members=[structured(member, structs, values) for member in _members(spec, structs)])
    return p4d.P4Data(struct=members) if kind == "struct" else p4d.P4Data(tuple=members)


def _members(spec: p4t.P4DataTypeSpec, structs: Structs) -> list[p4t.P4DataTypeSpec]:
    if spec.WhichOneof("type_spec") == "tuple":
        return list(spec.tuple.members)
    name = spec.struct.name
    return [member.type_spec for member in structs[name].members] if name in structs else []
