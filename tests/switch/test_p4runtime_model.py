"""Random writes against a dictionary: the same answers, the same entries, the same winner for every packet."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serene.switch.p4runtime.values import decode, encode
from tests.switch.conftest import Target
from tests.switch.p4rt_controller import Code, Controller, Stream, WriteFailed, update
from tests.switch.p4rt_probe import JSON, Probe

MASKS = (0xFFFF, 0xFF00, 0x00FF, 0x0001)
Entry = tuple[int, int, int]  # value, mask, priority


def _entries() -> st.SearchStrategy[Entry]:
    return st.tuples(st.integers(0, 3), st.sampled_from(MASKS), st.integers(1, 50)).map(
        lambda entry: (entry[0] & entry[1], entry[1], entry[2])
    )


WRITES = st.lists(
    st.tuples(st.sampled_from(["INSERT", "MODIFY", "DELETE"]), _entries(), st.integers(1, 999)), max_size=30
)


@pytest.fixture(scope="module")
def session(embedded: Target) -> Iterator[tuple[Controller, Stream]]:
    controller = embedded.controller()
    stream = controller.become_primary()
    controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
    yield controller, stream
    controller.close()


@settings(max_examples=60, deadline=None)
@given(writes=WRITES)
def test_ternary_tables_are_dictionaries(
    session: tuple[Controller, Stream], writes: list[tuple[str, Entry, int]]
) -> None:
    controller, stream = session
    model: dict[Entry, int] = {}
    expected, updates = [], []
    for kind, (value, mask, priority), found in writes:
        match = {"b": (value, mask)} if mask else {}
        updates.append(update(kind, controller.entry("by_ternary", match, "found_ternary", found, priority=priority)))
        key, present = (value, mask, priority), (value, mask, priority) in model
        if (kind == "INSERT") == present:
            expected.append(Code.ALREADY_EXISTS if present else Code.NOT_FOUND)
            continue
        expected.append(Code.OK)
        if kind == "DELETE":
            del model[key]
        else:
            model[key] = found
    try:
        controller.write(*updates)
        codes = [Code.OK] * len(updates)
    except WriteFailed as failed:
        codes = failed.codes
    assert codes == expected

    entries = controller.read(controller.key("by_ternary"))
    assert {
        (int.from_bytes(t.value, "big"), int.from_bytes(t.mask, "big"), e.priority): int.from_bytes(
            e.action.action.params[0].value, "big"
        )
        for e in entries
        for t in [e.match[0].ternary]
    } == model
    for b in (0, 1, 2, 0x0101):
        controller.packet_out(stream, Probe(b=b).frame())
        found = Probe.parse(stream.receive("packet").payload).by_ternary
        matching = [(key[2], result) for key, result in model.items() if b & key[1] == key[0]]
        best = max((priority for priority, _ in matching), default=None)
        assert found in {result for priority, result in matching if priority == best} or (not matching and found == 0)
    if entries:
        controller.delete(*entries)


@given(st.integers(0, (1 << 130) - 1), st.integers(0, 5))
def test_numbers_survive(value: int, padding: int) -> None:
    data = encode(value)
    assert data == b"\0" if value == 0 else data[0] != 0
    assert decode(bytes(padding) + data, 130, "a number") == value
