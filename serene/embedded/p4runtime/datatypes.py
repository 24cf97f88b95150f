"""The P4Info's types of digests, and values of these types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from finsy.proto import p4d, p4i, p4t

from serene.embedded.p4runtime.status import Failure, invalid
from serene.embedded.p4runtime.translation import Translation
from serene.embedded.p4runtime.values import encode
from serene.embedded.program.ir import Program

LEAVES = 4096  # largest number of numbers in one type
ENUM_BITS = 32  # of enums and errors in BMv2's JSON

Width = int | None  # None: the program's width


class Unsupported(Exception):
    """A digest cannot have this type here. The message names it."""


class Types:
    """The types of a P4Info. Without a program, the names of errors are their numbers, and no type is translated."""

    def __init__(
        self, p4info: p4i.P4Info, program: Program | None = None, translation: Translation | None = None
    ) -> None:
        self._info = p4info.type_info
        self._program = program
        self._translation = translation
        errors: Sequence[tuple[str, int]] = (program.json.get("errors") or ()) if program is not None else ()
        self._errors = {number: name for name, number in errors}

    def check_digest(self, digest: p4i.Digest, fields: Sequence[tuple[str, str]]) -> None:
        """Raises INVALID_ARGUMENT if the digest's type does not match the program's digest."""
        assert self._program is not None
        name = digest.preamble.name
        try:
            widths = self.leaf_widths(digest.type_spec)
        except Unsupported as error:
            raise invalid(f"the P4Info does not fit the program: digest {name!r}: {error}") from None
        held = [self._program.field(*field).width for field in fields]
        if len(widths) != len(held) or any(want not in (None, width) for want, width in zip(widths, held, strict=True)):
            wanted = ", ".join("any" if width is None else str(width) for width in widths)
            raise invalid(
                f"the P4Info does not fit the program: digest {name!r} has ({wanted}) bits in the P4Info and "
                f"({', '.join(map(str, held))}) bits in the program"
            )
        for spec, width in zip(self._leaves(digest.type_spec), held, strict=True):
            if spec.WhichOneof("type_spec") == "new_type" and self._translation is not None:
                self._translation.string_type(spec.new_type.name, width)

    def fits(self, digest: p4i.Digest, fields: Sequence[tuple[str, str]]) -> bool:
        """Whether the digest's type matches the program's digest of these fields."""
        try:
            self.check_digest(digest, fields)
        except Failure:
            return False
        return True

    def leaf_widths(self, spec: p4t.P4DataTypeSpec) -> list[Width]:
        """The widths of the numbers in a P4 type, in order. Raises Unsupported."""
        return [self._width(leaf) for leaf in self._leaves(spec)]

    def _leaves(self, spec: p4t.P4DataTypeSpec, depth: int = 16) -> list[p4t.P4DataTypeSpec]:
        if not depth:  # a P4Info may claim that a type contains itself
            raise Unsupported("types nested more than 16 deep are not supported")
        members = self._members(spec)
        if members is None:
            return [spec]
        leaves: list[p4t.P4DataTypeSpec] = []
        for member in members:
            leaves += self._leaves(member, depth - 1)
            if len(leaves) > LEAVES:
                raise Unsupported(f"more than {LEAVES} numbers are not supported")
        return leaves

    def _members(self, spec: p4t.P4DataTypeSpec) -> list[p4t.P4DataTypeSpec] | None:
        """The members of a struct, tuple, header or untranslated type; None for a single number."""
        kind = spec.WhichOneof("type_spec")
        if kind == "tuple":
            return list(spec.tuple.members)
        if kind == "struct":
            return (
                [member.type_spec for member in self._info.structs[spec.struct.name].members]
                if (spec.struct.name in self._info.structs)
                else []
            )
        if kind == "header" and spec.header.name in self._info.headers:
            fields = self._info.headers[spec.header.name].members
            return [p4t.P4DataTypeSpec(bitstring=field.type_spec) for field in fields]
        original = self._original(spec)
        return [original] if original is not None else None

    def _original(self, spec: p4t.P4DataTypeSpec) -> p4t.P4DataTypeSpec | None:
        """The type under an untranslated new type."""
        if spec.WhichOneof("type_spec") != "new_type" or spec.new_type.name not in self._info.new_types:
            return None
        new = self._info.new_types[spec.new_type.name]
        return new.original_type if new.WhichOneof("representation") == "original_type" else None

    def _width(self, spec: p4t.P4DataTypeSpec) -> Width:
        kind = spec.WhichOneof("type_spec")
        if kind == "bool":
            return 1
        if kind == "bitstring" and spec.bitstring.WhichOneof("type_spec") != "varbit":
            return int((spec.bitstring.int if spec.bitstring.HasField("int") else spec.bitstring.bit).bitwidth)
        if kind in ("enum", "error"):
            return ENUM_BITS
        if kind == "serializable_enum" and spec.serializable_enum.name in self._info.serializable_enums:
            return int(self._info.serializable_enums[spec.serializable_enum.name].underlying_type.bitwidth)
        if kind == "new_type" and spec.new_type.name in self._info.new_types:
            return None  # translated
        what = "varbit" if kind == "bitstring" else kind or "an empty type"
        raise Unsupported(
            f"{what} is not supported; supported are bit, int, bool, enums, errors and new types in structs, tuples "
            "and headers"
        )

    def structured(
        self, spec: p4t.P4DataTypeSpec, values: Sequence[int], valid: Mapping[int, bool] | None = None
    ) -> p4d.P4Data:
        """Converts numbers to a value of a P4 type that has ``leaf_widths``. valid: whether a header is valid, by the
        number of its first value."""
        return self._build(spec, iter(enumerate(values)), valid or {}, [0])

    def _build(
        self, spec: p4t.P4DataTypeSpec, values: Iterator[tuple[int, int]], valid: Mapping[int, bool], at: list[int]
    ) -> p4d.P4Data:
        kind, members = spec.WhichOneof("type_spec"), self._members(spec)
        if members is None:
            at[0] += 1
            return self._leaf(spec, next(values)[1])
        if kind == "new_type":
            return self._build(members[0], values, valid, at)
        if kind == "header":
            first = at[0]
            strings = [encode(value) for _, value in islice(values, len(members))]
            at[0] += len(members)
            is_valid = valid.get(first, True)
            return p4d.P4Data(header=p4d.P4Header(is_valid=is_valid, bitstrings=strings if is_valid else []))
        made = p4d.P4StructLike(members=[self._build(member, values, valid, at) for member in members])
        return p4d.P4Data(struct=made) if kind == "struct" else p4d.P4Data(tuple=made)

    def _leaf(self, spec: p4t.P4DataTypeSpec, value: int) -> p4d.P4Data:
        kind = spec.WhichOneof("type_spec")
        if kind == "bool":
            return p4d.P4Data(bool=bool(value))
        if kind == "enum":
            names = [member.name for member in self._info.enums[spec.enum.name].members]
            return p4d.P4Data(enum=names[value] if value < len(names) else str(value))
        if kind == "error":
            return p4d.P4Data(error=self._errors.get(value, str(value)))
        if kind == "serializable_enum":
            return p4d.P4Data(enum_value=encode(value))
        if kind == "new_type" and self._translation is not None:
            strings = self._translation.strings.get(spec.new_type.name)
            if strings is not None:
                return p4d.P4Data(bitstring=strings.string(value))
        if kind == "bitstring" and spec.bitstring.WhichOneof("type_spec") == "int":
            return p4d.P4Data(bitstring=_signed(value, spec.bitstring.int.bitwidth))
        return p4d.P4Data(bitstring=encode(value))


def _signed(value: int, width: int) -> bytes:
    """A two's complement number of ``width`` bits in the fewest bytes."""
    number = value - (1 << width) if value >> (width - 1) else value
    bits = (number if number >= 0 else ~number).bit_length() + 1
    return number.to_bytes((bits + 7) // 8, "big", signed=True)
