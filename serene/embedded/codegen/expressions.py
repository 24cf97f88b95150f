"""Generates C for BMv2's expressions.

BMv2 computes with unbounded integers, and p4c writes a mask wherever the language truncates a value. Here every
expression has the range of its value. Only the low bits that are needed are computed: a mask or an assignment narrows
all its operands. Values of up to 64 bits become plain C. Wider values become loops over limbs (runtime/wide.h).
Neighbouring bitwise operations, and additions without a carry between limbs, become one loop, which the compiler
vectorises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from serene.embedded.codegen.budget import Budget
from serene.embedded.program.errors import NotBmv2Json, UnsupportedProgram
from serene.embedded.program.ir import limbs_of, mask
from serene.embedded.program.limits import MAX_EXPRESSION_BITS

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Place:
    """A C variable with a number: a scalar up to 64 bits, else an array of 64-bit limbs."""

    code: str
    width: int  # bits
    signed: bool = False
    writable: bool = False

    @property
    def limbs(self) -> int:
        return limbs_of(self.width)


@dataclass(frozen=True)
class Expr:
    """An integer expression and the range of its exact value."""

    op: str
    low: int
    high: int
    args: tuple[Any, ...] = ()
    value: int = 0  # of a constant
    place: Any = None  # the Place, where op is "place"
    ones: int = field(default=-1)  # bits that may be set; -1 if negative values are possible

    def __post_init__(self) -> None:
        if self.bits > MAX_EXPRESSION_BITS:
            raise UnsupportedProgram(f"operator {self.op!r} on {self.bits} bits; {MAX_EXPRESSION_BITS} at most")

    @property
    def bits(self) -> int:
        """The number of bits for the exact value, including the sign if it can be negative."""
        if self.low >= 0:
            return max(self.high.bit_length(), 1)
        return max(self.high.bit_length(), (-self.low - 1).bit_length()) + 1


def constant(value: int) -> Expr:
    return Expr("constant", value, value, value=value, ones=value if value >= 0 else -1)


def place_expr(place: Place) -> Expr:
    if place.signed:
        return Expr("place", -(1 << (place.width - 1)), mask(place.width - 1), place=place)
    return Expr("place", 0, mask(place.width), place=place, ones=mask(place.width))


def _with_ones(op: str, low: int, high: int, args: tuple[Any, ...]) -> Expr:
    if low < 0:
        return Expr(op, low, high, args)
    ones = mask(high.bit_length())
    if op == "&":
        ones &= args[0].ones & args[1].ones
    elif op in ("|", "^") and args[0].ones >= 0 and args[1].ones >= 0:
        ones = args[0].ones | args[1].ones
    return Expr(op, low, high, args, ones=ones)


def binary(op: str, a: Expr, b: Expr) -> Expr:
    """The node for a binary integer operation, with the range that follows from its operands."""
    if op in ("<<", ">>") and b.op == "constant" and not 0 <= b.value <= MAX_EXPRESSION_BITS:
        raise UnsupportedProgram(f"operator {op!r} by {b.value} bits; expected 0 to {MAX_EXPRESSION_BITS}")
    if op == "+":
        low, high = a.low + b.low, a.high + b.high
    elif op == "-":
        low, high = a.low - b.high, a.high - b.low
    elif op == "*":
        products = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        low, high = min(products), max(products)
    elif op == "<<":
        by = max(min(b.high, 4096), 0)
        low, high = min(a.low << by, a.low), max(a.high << by, a.high)
    elif op == ">>":
        low, high = (min(a.low, 0), a.high >> b.low) if b.low >= 0 else (a.low, a.high)
        high = max(high, 0)
    elif op == "&":
        if a.low >= 0 and b.low >= 0:
            low, high = 0, min(a.high, b.high)
        elif a.low >= 0 or b.low >= 0:
            low, high = 0, a.high if a.low >= 0 else b.high
        else:
            width = max(a.bits, b.bits)
            low, high = -(1 << (width - 1)), mask(width - 1)
    elif op in ("|", "^"):
        width = max(a.bits + (a.low >= 0 > b.low), b.bits + (b.low >= 0 > a.low))
        low, high = (0, mask(width)) if a.low >= 0 and b.low >= 0 else (-(1 << (width - 1)), mask(width - 1))
    elif op == "/":
        low, high = 0, max(a.high, 0)
    elif op == "%":
        low, high = 0, max(b.high - 1, 0)
    else:
        raise UnsupportedProgram(f"operator {op!r} is not supported")
    return _with_ones(op, low, high, (a, b))


class Emitter:
    """Writes expressions into one C function: statements into ``lines``, constants into the file's constants."""

    def __init__(self, budget: Budget) -> None:
        self.lines: list[str] = []
        self._budget = budget
        self._temporaries = 0

    def line(self, text: str) -> None:
        self._budget.wrote(len(text))
        self.lines.append(text)

    def array(self, name: str, limbs: int) -> None:
        self._budget.spend(limbs)
        self.line(f"uint64_t {name}[{limbs}];")

    def temporary(self, limbs: int) -> str:
        self._temporaries += 1
        name = f"t{self._temporaries}"
        self.array(name, limbs)
        return name

    def scalar(self, code: str) -> str:
        """C that may be used several times. It is computed once; otherwise nested expressions would double at each
        level."""
        if code.isalnum():
            return code
        self._temporaries += 1
        name = f"t{self._temporaries}"
        self.line(f"const uint64_t {name} = {code};")
        return name

    def constant_array(self, value: int, limbs: int) -> str:
        key = (value & mask(64 * limbs), limbs)
        constants = self._budget.constants
        return constants.setdefault(key, f"constant_{len(constants)}")

    # -- up to 64 bits ---------------------------------------------------------------------------------------

    def narrow(self, e: Expr, bits: int) -> tuple[str, int]:
        """C for the low ``bits`` (<= 64) of e, and the number of bits that the C value may really have."""
        if e.op == "constant":
            return f"{e.value & mask(bits):#x}ull", max((e.value & mask(bits)).bit_length(), 1)
        if e.op == "place":
            return self._narrow_place(e.place, bits)
        if e.op == "bool":
            return f"(uint64_t){e.args[0]}", 1
        if e.op == "c":
            return e.args[0], e.bits
        if e.op == "?":
            condition, a, b = e.args
            (x, m), (y, n) = self.narrow(a, bits), self.narrow(b, bits)
            return f"({condition} ? {x} : {y})", max(m, n)
        if e.op == "~":
            return f"(~{self.narrow(e.args[0], bits)[0]})", 64
        if e.op == "signed":  # the low e.value bits of the operand as a signed number
            code = self.narrow(e.args[0], min(bits, e.value))[0]
            return (code, 64) if bits <= e.value else (f"sign_extend({code}, {e.value})", 64)
        if e.op == "saturate":
            return self._saturate(e), 64
        a, b = e.args
        if e.op in ("+", "-", "*", "|", "^"):
            (x, m), (y, n) = self.narrow(a, bits), self.narrow(b, bits)
            size = {"+": max(m, n) + 1, "-": 64, "*": m + n}.get(e.op, max(m, n))
            return f"({x} {e.op} {y})", min(size, 64)
        if e.op == "&":
            return self._narrow_and(a, b, bits)
        if e.op == "<<":
            if b.op == "constant":
                if b.value >= bits:
                    return "0ull", 1
                code, size = self.narrow(a, bits - b.value)
                return f"({code} << {b.value})", min(size + b.value, 64)
            if b.bits > 64:
                raise UnsupportedProgram("shifting by a value wider than 64 bits is not supported")
            return f"shift_left({self.narrow(a, bits)[0]}, {self.exact(b)})", 64
        if e.op == ">>":
            return self._narrow_shift_right(a, b, bits)
        if e.op in ("/", "%"):
            if a.bits > 64 or b.bits > 64 or a.low < 0 or b.low < 0:
                raise UnsupportedProgram(f"{e.op!r} on more than 64 bits or on negative numbers is not supported")
            x, y = self.exact(a), self.scalar(self.exact(b))
            return f"({y} ? {x} {e.op} {y} : 0)", 64
        raise UnsupportedProgram(f"operator {e.op!r} is not supported")

    def _narrow_place(self, place: Place, bits: int) -> tuple[str, int]:
        if place.width > 64:
            return f"{place.code}[0]", 64
        if place.signed and bits > place.width:
            return f"sign_extend({place.code}, {place.width})", 64
        return f"(uint64_t){place.code}", place.width

    def _narrow_and(self, a: Expr, b: Expr, bits: int) -> tuple[str, int]:
        if a.op == "constant":
            a, b = b, a
        if b.op == "constant" and b.value >= 0:
            keep = b.value & mask(bits)
            code, size = self.narrow(a, max(min(bits, keep.bit_length()), 1))
            if keep & mask(size) == mask(size):
                return code, size
            return f"({code} & {keep:#x}ull)", min(size, max(keep.bit_length(), 1))
        (x, m), (y, n) = self.narrow(a, bits), self.narrow(b, bits)
        return f"({x} & {y})", min(m, n)

    def _narrow_shift_right(self, a: Expr, b: Expr, bits: int) -> tuple[str, int]:
        if b.op == "constant":
            wanted = min(a.bits, bits + b.value)
            if wanted <= 64 and a.low >= 0:
                if b.value >= wanted:
                    return "0ull", 1
                return f"({self.cut(a, wanted)} >> {b.value})", wanted - b.value
        if a.bits <= 64:
            function = "shift_right_signed" if a.low < 0 else "shift_right"
            return f"{function}({self.exact(a)}, {self.exact(b)})", 64
        return f"{self._wide_shift_right(a, b, bits)}[0]", 64

    def cut(self, e: Expr, bits: int) -> str:
        code, size = self.narrow(e, bits)
        return code if size <= bits else f"({code} & {mask(bits):#x}ull)"

    def _saturate(self, e: Expr) -> str:
        (a,), width, signed = e.args, e.value, e.low < 0
        if a.bits > 64:
            raise UnsupportedProgram("a saturating cast from more than 64 bits is not supported")
        low, high = (-(1 << (width - 1)), mask(width - 1)) if signed else (0, mask(width))
        x = self.scalar(self.exact(a))
        if a.low < 0:
            floor = f"(int64_t){x} < {low}ll ? (uint64_t){low}ll : " if a.low < low else ""
            return f"({floor}(int64_t){x} > (int64_t){high:#x}ll ? {high:#x}ull : {x})"
        return f"({x} > {high:#x}ull ? {high:#x}ull : {x})"

    def exact(self, e: Expr) -> str:
        """C (uint64_t) for the exact value of an expression of at most 64 bits, sign-extended if it is signed."""
        if e.bits > 64:
            raise UnsupportedProgram(f"operator {e.op!r} on {e.bits} bits is not supported here")
        code, size = self.narrow(e, e.bits)
        if e.low < 0:
            return code if e.bits == 64 else f"sign_extend({code}, {e.bits})"
        return code if size <= e.bits else f"({code} & {mask(e.bits):#x}ull)"

    # -- wider -----------------------------------------------------------------------------------------------

    def limb(self, e: Expr, limbs: int) -> str:
        """C for limb ``i`` of the low 64 * limbs bits of e: the body of a loop over i."""
        if e.op == "constant":
            value = e.value & mask(64 * limbs)
            first = value & mask(64)
            if all((value >> (64 * i)) & mask(64) == first for i in range(limbs)):
                return f"{first:#x}ull"
            return f"{self.constant_array(e.value, limbs)}[i]"
        if e.op == "place" and e.place.width > 64 and (e.place.limbs >= limbs) and not e.place.signed:
            return f"{e.place.code}[i]"
        if e.op in ("&", "|", "^") or (e.op == "+" and not self._carries(e, limbs)):
            return f"({self.limb(e.args[0], limbs)} {e.op} {self.limb(e.args[1], limbs)})"
        if e.op == "~":
            return f"(~{self.limb(e.args[0], limbs)})"
        return f"{self.wide(e, limbs)}[i]"

    @staticmethod
    def _carries(e: Expr, limbs: int) -> bool:
        top = sum(1 << (64 * i + 63) for i in range(limbs))
        return any(arg.ones < 0 or arg.ones & top for arg in e.args)

    def wide(self, e: Expr, limbs: int) -> str:
        """The name of an array of ``limbs`` limbs with e's low bits (all bits, if e is no wider)."""
        if e.op == "place" and e.place.width > 64 and e.place.limbs == limbs and not e.place.signed:
            return str(e.place.code)
        if e.op == "constant":
            return self.constant_array(e.value, limbs)
        name = self.temporary(limbs)
        if e.op == "place" and e.place.width > 64:
            place, copy = e.place, "wide_copy_signed" if e.place.signed else "wide_copy"
            extra = f", {place.width}" if place.signed else ""
            self.line(f"{copy}({name}, {limbs}, {place.code}, {place.limbs}{extra});")
        elif e.bits <= 64:
            code = self.scalar(self.exact(e))
            self.line(f"wide_set({name}, {limbs}, {code}, {f'(int64_t){code} < 0' if e.low < 0 else '0'});")
        elif e.op in ("&", "|", "^", "~") or (e.op == "+" and not self._carries(e, limbs)):
            body = self.limb(e, limbs)
            self.line(f"for (int i = 0; i < {limbs}; i++) {name}[i] = {body};")
        elif e.op in ("+", "-", "*"):
            function = {"+": "wide_add", "-": "wide_subtract", "*": "wide_multiply"}[e.op]
            a, b = self.wide(e.args[0], limbs), self.wide(e.args[1], limbs)
            self.line(f"{function}({name}, {a}, {b}, {limbs});")
        elif e.op == "<<":
            by = self.exact(e.args[1])
            self.line(f"wide_shift_left({name}, {self.wide(e.args[0], limbs)}, {by}, {limbs});")
        elif e.op == ">>":
            shifted = self._wide_shift_right(e.args[0], e.args[1], 64 * limbs)
            self.line(f"wide_copy({name}, {limbs}, {shifted}, {limbs});")
        elif e.op == "?":
            condition, a, b = e.args
            x, y = self.wide(a, limbs), self.wide(b, limbs)
            self.line(f"wide_copy({name}, {limbs}, {condition} ? {x} : {y}, {limbs});")
        elif e.op == "signed":
            source = self.wide(e.args[0], limbs_of(e.value))
            self.line(f"wide_copy_signed({name}, {limbs}, {source}, {limbs_of(e.value)}, {e.value});")
        else:
            raise UnsupportedProgram(f"operator {e.op!r} on {e.bits} bits is not supported")
        return name

    def _wide_shift_right(self, a: Expr, b: Expr, bits: int) -> str:
        source_limbs = limbs_of(a.bits + (a.low < 0))
        source, limbs = self.wide_exact(a, source_limbs), limbs_of(bits)
        name = self.temporary(limbs)
        fill = f"(int64_t){source}[{source_limbs - 1}] < 0 ? ~0ull : 0" if a.low < 0 else "0"
        by = self.exact(b)
        self.line(f"wide_shift_right({name}, {limbs}, {source}, {source_limbs}, {by}, {fill});")
        return name

    def wide_exact(self, e: Expr, limbs: int) -> str:
        """As ``wide``, and every bit above the exact value is zero (or the sign)."""
        name = self.wide(e, limbs)
        clean = e.op in ("constant", "place", "signed") or (
            e.op == "&" and any(arg.op in ("constant", "place") and arg.low >= 0 for arg in e.args)
        )
        if e.bits <= 64 or clean or e.bits >= 64 * limbs:
            return name
        copy = self.temporary(limbs)
        if e.low < 0:
            self.line(f"wide_copy_signed({copy}, {limbs}, {name}, {limbs_of(e.bits)}, {e.bits});")
        else:
            top = (e.bits - 1) // 64
            self.line(f"wide_copy({copy}, {limbs}, {name}, {limbs});")
            self.line(f"{copy}[{top}] &= MASK({e.bits - 64 * top});")
            self.line(f"for (int i = {top + 1}; i < {limbs}; i++) {copy}[i] = 0;")
        return copy

    # -- assignments ------------------------------------------------------------------------------------------

    def compare(self, op: str, a: Expr, b: Expr) -> str:
        if a.bits <= 64 and b.bits <= 64 and (a.low >= 0) == (b.low >= 0):
            cast = "(int64_t)" if a.low < 0 else ""
            return f"({cast}{self.exact(a)} {op} {cast}{self.exact(b)})"
        limbs = limbs_of(max(a.bits, b.bits) + 1)
        if limbs == 1:
            return f"((int64_t){self.exact(a)} {op} (int64_t){self.exact(b)})"
        x, y = self.wide_exact(a, limbs), self.wide_exact(b, limbs)
        return {
            "==": f"wide_equal({x}, {y}, {limbs})",
            "!=": f"!wide_equal({x}, {y}, {limbs})",
            "<": f"wide_less({x}, {y}, {limbs})",
            ">": f"wide_less({y}, {x}, {limbs})",
            "<=": f"!wide_less({y}, {x}, {limbs})",
            ">=": f"!wide_less({x}, {y}, {limbs})",
        }[op]

    def store(self, place: Place, e: Expr) -> None:
        """Assigns the low bits of e to a place."""
        if place.width <= 64:
            code, size = self.narrow(e, place.width)
            self.line(f"{place.code} = {code if size <= place.width else f'({code}) & {mask(place.width):#x}ull'};")
            return
        limbs = place.limbs
        body = self.limb(e, limbs)
        if body == f"{place.code}[i]":
            pass
        elif e.op == "place":
            self.line(f"wide_move({place.code}, {body.removesuffix('[i]')}, {limbs});")
        else:
            self.line(f"for (int i = 0; i < {limbs}; i++) {place.code}[i] = {body};")
        if place.width % 64 and (e.ones < 0 or e.ones >> place.width):
            self.line(f"{place.code}[{limbs - 1}] &= MASK({place.width % 64});")


class Reader:
    """Turns the JSON of expressions into ``Expr`` (numbers) and C text (truth values)."""

    def __init__(
        self,
        emitter: Emitter,
        field: Callable[[str, str, Emitter], Expr],
        local: Callable[[int], Place],
        special: Callable[[str, Any, Emitter], Expr | None],
    ) -> None:
        self._emitter = emitter
        self._field = field  # of a header
        self._local = local  # an action's parameter
        self._special = special  # operands whose meaning depends on their place: stacks, lookahead

    def number(self, node: Any) -> Expr:
        kind, value = _operand(node)
        if kind == "expression":
            return self._operation(value) if "op" in value else self.number(value)
        if kind == "field":
            return self._field(value[0], value[1], self._emitter)
        if kind == "hexstr":
            return constant(int(value, 16))
        if kind in ("local", "runtime_data"):
            return place_expr(self._local(value))
        if kind == "bool":
            return constant(int(value))
        special = self._special(kind, value, self._emitter)
        if special is None:
            raise UnsupportedProgram(f"an operand of type {kind!r} is not supported")
        return special

    def _operation(self, node: Mapping[str, Any]) -> Expr:
        op: str = node["op"]
        left: Any = node.get("left")
        right: Any = node.get("right")
        if op == "b2d":
            return Expr("bool", 0, 1, (self.truth(right),), ones=1)
        if op == "?":
            a, b = self.number(left), self.number(right)
            condition = self.truth(node.get("cond"))
            ones = a.ones | b.ones if a.ones >= 0 and b.ones >= 0 else -1
            return Expr("?", min(a.low, b.low), max(a.high, b.high), (condition, a, b), ones=ones)
        if op == "~":
            a = self.number(right)
            return Expr("~", ~a.high, ~a.low, (a,))
        if op == "two_comp_mod":
            a, width = self.number(left), self._width(right)
            return Expr("signed", -(1 << (width - 1)), mask(width - 1), (a,), value=width)
        if op in ("usat_cast", "sat_cast"):
            a, width = self.number(left), self._width(right)
            low, high = (0, mask(width)) if op == "usat_cast" else (-(1 << (width - 1)), mask(width - 1))
            return Expr("saturate", low, high, (a,), value=width, ones=mask(width) if low == 0 else -1)
        if op == "-" and left is None:
            return binary("-", constant(0), self.number(right))
        if op == "+" and left is None:
            return self.number(right)
        special = self._special(op, node, self._emitter)
        if special is not None:
            return special
        return binary(op, self.number(left), self.number(right))

    def _width(self, node: Any) -> int:
        """The width of a cast, which has to be a constant."""
        width = self.number(node)
        if width.op != "constant" or not 0 < width.value <= MAX_EXPRESSION_BITS // 2:
            raise NotBmv2Json(f"a cast to {width.value if width.op == 'constant' else 'a width that varies'} bits")
        return width.value

    def truth(self, node: Any) -> str:
        """C for a truth value."""
        kind, value = _operand(node)
        if kind == "bool":
            return "1" if value else "0"
        if kind != "expression":
            return f"({self._emitter.exact(self.number(node))} != 0)"
        if "op" not in value:
            return self.truth(value)
        op: str = value["op"]
        left: Any = value.get("left")
        right: Any = value.get("right")
        if op == "d2b":
            return self._emitter.compare("!=", self.number(right), constant(0))
        if op == "not":
            return f"(!{self.truth(right)})"
        if op in ("and", "or"):
            return f"({self.truth(left)} {'&&' if op == 'and' else '||'} {self.truth(right)})"
        if op in COMPARISONS:
            if self._is_truth(left):
                return f"({self.truth(left)} {op} {self.truth(right)})"
            return self._emitter.compare(op, self.number(left), self.number(right))
        if op in ("valid", "valid_union"):
            return self._emitter.exact(self.number(node))
        if op == "?":
            return f"({self.truth(value.get('cond'))} ? {self.truth(left)} : {self.truth(right)})"
        raise NotBmv2Json(f"operator {op!r} does not give a truth value")

    def _is_truth(self, node: Any) -> bool:
        kind, value = _operand(node)
        if kind == "bool":
            return True
        if kind != "expression":
            return False
        if "op" not in value:
            return self._is_truth(value)
        return value["op"] in ("d2b", "not", "and", "or", "valid", "valid_union", *COMPARISONS)


def _operand(node: Any) -> tuple[str, Any]:
    """An operand's type and value."""
    if not isinstance(node, Mapping) or "value" not in node:
        raise NotBmv2Json("an operator without the operands that it needs")
    return node["type"], node["value"]
