"""WriteRequests that the engine handles itself, compared with Python's handling: the same errors, entries and answers
to reads. Random updates, most of them nearly right, and broken encodings."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence

import pytest
from finsy.proto import p4i, p4r
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from serene.embedded import Switch
from serene.embedded.p4runtime.entities import Entities
from serene.embedded.p4runtime.pipeline import Schema
from serene.embedded.p4runtime.status import Failure
from serene.embedded.p4runtime.values import decode, encode
from tests.embedded.p4rt_controller import load_p4info
from tests.embedded.p4rt_probe import P4INFO, TABLES, enlarged
from tests.embedded.sanitizers import loaded_flags

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE


class Half:
    """The control state of one switch."""

    def __init__(self, program: bytes, info: p4i.P4Info) -> None:
        self.switch = Switch.load(program, compiler_flags=loaded_flags())
        self.schema = Schema(info, self.switch.program)
        self.entities = Entities(self.schema, self.switch, lambda message: True)

    def write(self, request: p4r.WriteRequest) -> list[str]:
        """By Python alone, one after the other."""
        results = []
        for update in request.updates:
            try:
                self.entities.write(update)
                results.append("")
            except Failure as failure:
                results.append(f"{failure.code}: {failure.message}")
        return results

    def write_all(self, data: bytes) -> list[str]:
        results = self.entities.write_all(p4r.WriteRequest.FromString(data).updates, data)
        return [f"{failure.code}: {failure.message}" if failure else "" for failure in results]

    def entries(self, wanted: p4r.TableEntry) -> list[bytes]:
        entries = (entity.table_entry for entity in self.entities.read(p4r.Entity(table_entry=wanted)))
        return sorted(entry.SerializeToString(deterministic=True) for entry in entries)


@pytest.fixture
def halves() -> Iterator[tuple[Half, Half]]:
    program, info = enlarged(300, *TABLES), load_p4info(P4INFO)
    pair = Half(program, info), Half(program, info)
    yield pair
    for half in pair:
        half.switch.close()


def number(some: random.Random, width: int) -> bytes:
    """A number of that width or, seldom, one that does not fit, or none; with zeros before it at times."""
    if some.random() < 0.02:
        return b""
    bits = width + (some.random() < 0.02)
    value = some.choice((some.getrandbits(bits), some.randrange(1 << min(bits, 5)), (1 << bits) - 1))
    return bytes(some.choice((0, 0, 0, 1, 9))) + value.to_bytes(max((value.bit_length() + 7) // 8, 1), "big")


def field(some: random.Random, info: p4i.MatchField) -> p4r.FieldMatch:
    kinds = p4i.MatchField
    given = p4r.FieldMatch(field_id=info.id if some.random() < 0.99 else info.id + 1)
    width, value = info.bitwidth, number(some, info.bitwidth)
    kind = info.match_type if some.random() < 0.99 else kinds.EXACT
    if kind == kinds.LPM:
        given.lpm.prefix_len = some.choice((8, 16, width, some.randrange(-1, width + 2)))
        keep = (1 << width) - (1 << max(width - given.lpm.prefix_len, 0))
        if some.random() < 0.95 and value:
            value = (int.from_bytes(value, "big") & keep).to_bytes(max(len(value), width // 8), "big")
        given.lpm.value = value
    elif kind == kinds.TERNARY:
        mask = some.choice((number(some, width), b"\x0f", b"\xff"))
        if some.random() < 0.95 and value:
            value = (int.from_bytes(value, "big") & int.from_bytes(mask, "big")).to_bytes(len(value), "big")
        given.ternary.value, given.ternary.mask = value, mask
    elif kind == kinds.RANGE:
        low, high = sorted((value, number(some, width)), key=lambda data: int.from_bytes(data, "big"))
        given.range.low, given.range.high = (low, high) if some.random() < 0.97 else (high, low)
    elif kind == kinds.OPTIONAL:
        given.optional.value = value
    else:
        given.exact.value = value
    return given


def entry(some: random.Random, schema: Schema, table: p4i.Table) -> p4r.TableEntry:
    made = p4r.TableEntry(table_id=table.preamble.id if some.random() < 0.99 else 1)
    given = [
        field(some, info)
        for info in table.match_fields
        if info.match_type == p4i.MatchField.EXACT or some.random() < 0.8
    ]
    some.shuffle(given)
    made.match.extend(given)
    if made.match and some.random() < 0.01:
        made.match.add().CopyFrom(made.match[0])
    ternary = any(info.match_type not in (p4i.MatchField.EXACT, p4i.MatchField.LPM) for info in table.match_fields)
    made.priority = some.choice((0, 1, -1)) if some.random() < 0.03 else some.randint(1, 4) if ternary else 0
    if some.random() < 0.98:
        reference = some.choice(table.action_refs)
        action = schema.actions[reference.id]
        made.action.action.action_id = reference.id if some.random() < 0.99 else 7
        for param in action.params:
            if some.random() < 0.99:
                made.action.action.params.add(param_id=param.id, value=number(some, param.bitwidth))
        if action.params and some.random() < 0.01:
            made.action.action.params.add(param_id=1, value=b"\1")
    rare: Sequence[Callable[[], object]] = (
        lambda: setattr(made, "metadata", b"a note"),
        lambda: setattr(made, "controller_metadata", some.getrandbits(64)),
        lambda: setattr(made, "idle_timeout_ns", 10**15),
        lambda: made.meter_config.CopyFrom(p4r.MeterConfig(cir=1, cburst=2, pir=3, pburst=4)),
        lambda: made.counter_data.CopyFrom(p4r.CounterData(packet_count=3, byte_count=4)),
        lambda: setattr(made, "is_default_action", True),
        lambda: setattr(made, "is_const", True),
        lambda: setattr(made.action, "action_profile_member_id", 1),
    )
    if some.random() < 0.15:
        some.choice(rare)()
    return made


def request(some: random.Random, half: Half, present: Sequence[p4r.TableEntry]) -> p4r.WriteRequest:
    made = p4r.WriteRequest(device_id=1, election_id=p4r.Uint128(low=5))
    tables = [half.schema.tables[id_] for id_ in half.schema.tables]
    for _ in range(some.randrange(1, 60)):
        update = made.updates.add(type=some.choice((INSERT, INSERT, INSERT, MODIFY, DELETE)))
        if some.random() < 0.01:
            update.type = 0
        if some.random() < 0.02:
            update.entity.counter_entry.counter_id = 1
            continue
        one = entry(some, half.schema, some.choice(tables))
        if present and update.type != INSERT and some.random() < 0.9:  # of one that is there
            old = some.choice(present)
            table = half.schema.tables[old.table_id]
            one = entry(some, half.schema, table)
            del one.match[:]
            one.match.extend(old.match)
            one.table_id, one.priority = old.table_id, old.priority
        update.entity.table_entry.CopyFrom(one)
    return made


def check_same(plain: Half, python: Half, some: random.Random) -> list[p4r.TableEntry]:
    """Reads in every form, compares the results, and returns the entries."""
    everything = plain.entries(p4r.TableEntry())
    assert everything == python.entries(p4r.TableEntry())
    views = sorted(
        held.entry.SerializeToString(deterministic=True)
        for table in plain.schema.tables.values()
        for held in plain.entities.tables._entries(table)
    )
    assert everything == views  # what the engine encodes, and what Python makes of the engine's numbers
    found = [p4r.TableEntry.FromString(data) for data in everything]
    for one in some.sample(found, min(len(found), 5)):
        key = p4r.TableEntry(table_id=one.table_id, match=one.match, priority=one.priority)
        wanted = [key, p4r.TableEntry(table_id=one.table_id), p4r.TableEntry(table_id=one.table_id, match=one.match)]
        wanted += [p4r.TableEntry(table_id=one.table_id, priority=one.priority) if one.priority else key]
        by_action = p4r.TableEntry(table_id=one.table_id)
        by_action.action.action.action_id = one.action.action.action_id
        by_number = p4r.TableEntry(table_id=one.table_id, controller_metadata=one.controller_metadata)
        by_metadata = p4r.TableEntry(table_id=one.table_id, metadata=one.metadata)
        with_meter = p4r.TableEntry(table_id=one.table_id, meter_config=p4r.MeterConfig())
        for each in (*wanted, by_action, by_number, by_metadata, with_meter):
            answer = plain.entries(each)
            assert answer == python.entries(each)
            if not each.HasField("meter_config"):
                assert one.SerializeToString(deterministic=True) in answer
    return found


@pytest.mark.parametrize("seed", range(4))
def test_engine_writes_equal_pythons_for_random_updates(halves: tuple[Half, Half], seed: int) -> None:
    plain, python = halves
    some = random.Random(seed)
    present: list[p4r.TableEntry] = []
    errors: set[str] = set()
    keys = {key_of(entry) for entry in check_same(plain, python, some)}  # the program's own
    for number in range(40):
        made = request(some, plain, present)
        expected = python.write(made)
        assert plain.write_all(made.SerializeToString()) == expected
        errors.update(expected)
        keep_account(keys, made.updates, expected)
        if number % 4 == 3:  # what differs stays different
            present = check_same(plain, python, some)
            assert {key_of(entry) for entry in present} == keys
    assert len(errors) > 20 and "" in errors


def key_of(entry: p4r.TableEntry) -> object:
    """Returns an entry's key: table, match and priority."""

    def numbers(match: p4r.FieldMatch) -> tuple[int, ...]:
        fields = getattr(match, str(match.WhichOneof("field_match_type"))).ListFields()
        return tuple(int.from_bytes(each, "big") if isinstance(each, bytes) else each for _, each in fields)

    return entry.table_id, entry.priority, frozenset((match.field_id, numbers(match)) for match in entry.match)


def keep_account(keys: set[object], updates: Iterable[p4r.Update], results: Iterable[str]) -> None:
    """Plays the updates to a set of keys, which has to agree with their results."""
    for update, result in zip(updates, results, strict=True):
        entry, key = update.entity.table_entry, key_of(update.entity.table_entry)
        if not update.entity.HasField("table_entry") or entry.is_default_action:
            continue
        if not result:
            assert (update.type == INSERT) == (key not in keys)
            (keys.discard if update.type == DELETE else keys.add)(key)
        elif "ALREADY_EXISTS" in result or "NOT_FOUND" in result:
            assert ("ALREADY_EXISTS" in result) == (key in keys)


def lpm(schema: Schema, address: bytes, length: int) -> p4r.TableEntry:
    info = next(table for table in schema.tables.values() if table.preamble.name.endswith("by_lpm"))
    made = p4r.TableEntry(table_id=info.preamble.id)
    made.match.add(field_id=1).lpm.value, made.match[0].lpm.prefix_len = address, length
    made.action.action.action_id = next(ref.id for ref in info.action_refs if schema.actions[ref.id].params)
    made.action.action.params.add(param_id=1, value=b"\5")
    return made


def test_plain_writes_do_not_call_python(halves: tuple[Half, Half], monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the comparison above would compare Python with itself."""
    plain, _ = halves
    made = p4r.WriteRequest()
    for kind in (INSERT, MODIFY, DELETE, INSERT):
        for value in range(50):
            made.updates.add(type=kind).entity.table_entry.CopyFrom(lpm(plain.schema, bytes((10, value, 0, 0)), 16))
    with monkeypatch.context() as patched:
        patched.setattr(plain.entities, "write", None)
        patched.setattr(plain.entities.tables, "_installed", None)
        assert not any(plain.write_all(made.SerializeToString()))
        assert len(plain.entries(p4r.TableEntry(table_id=made.updates[0].entity.table_entry.table_id))) == 50


def test_message_fields_given_twice_are_merged(halves: tuple[Half, Half]) -> None:
    """protobuf merges two fields where one is expected; random bytes hardly ever contain such."""
    plain, python = halves
    one = lpm(plain.schema, b"\x0a\0\0\0", 8)
    whole, more = p4r.Update(type=INSERT, entity=p4r.Entity(table_entry=one)), p4r.Update()
    more.entity.table_entry.controller_metadata = 7
    data = more.SerializeToString() + whole.SerializeToString()
    request = b"\x22" + bytes([len(data)]) + data  # field 4, of so many bytes
    assert python.write(p4r.WriteRequest.FromString(request)) == plain.write_all(request) == [""]
    found = check_same(plain, python, random.Random(0))
    assert [entry.controller_metadata for entry in found if entry.match == one.match] == [7]


@pytest.mark.parametrize("seed", range(2))
def test_plain_write_matches_protobuf_on_corrupt_requests(halves: tuple[Half, Half], seed: int) -> None:
    plain, python = halves
    some = random.Random(1000 + seed)
    present: list[p4r.TableEntry] = []
    parsed = 0
    for _ in range(200):
        data = bytearray(request(some, plain, present).SerializeToString())
        for _ in range(some.choice((1, 1, 1, 2, 3))):
            at = some.randrange(len(data))
            how = some.randrange(4)
            if how == 0:
                data[at] ^= 1 << some.randrange(8)
            elif how == 1:
                del data[at : at + some.randrange(1, 9)]
            elif how == 2:
                data[at:at] = data[some.randrange(len(data)) :][: some.randrange(1, 40)]
            else:
                data[at:at] = some.choice((b"\x0b", b"\x0c", b"\x80\x00", b"\xff" * 10, b"\x22\x00", b"\x20\x05"))
        try:
            expected = python.write(p4r.WriteRequest.FromString(bytes(data)))
        except DecodeError:
            continue
        parsed += 1
        assert plain.write_all(bytes(data)) == expected
        if parsed % 4 == 0:
            present = check_same(plain, python, some)
    check_same(plain, python, some)
    assert parsed > 10


@given(st.integers(0, (1 << 130) - 1), st.integers(0, 5))
def test_encoded_numbers_decode_to_the_same_value(value: int, padding: int) -> None:
    data = encode(value)
    assert data == b"\0" if value == 0 else data[0] != 0
    assert decode(bytes(padding) + data, 130, "a number") == value
