"""RECONCILE_AND_COMMIT: the state of controllers and packets in a program is kept by the next program."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from finsy.proto import p4i, p4r

from serene.embedded.control import arrays
from serene.embedded.control.types import CounterValue
from serene.embedded.engine import Switch
from serene.embedded.p4runtime.meters import Meters
from tests.embedded.conftest import Target
from tests.embedded.p4rt_controller import (
    Code,
    but,
    clone_session,
    everything,
    multicast_group,
    number,
    ordered,
    refused,
    until,
)
from tests.embedded.p4rt_probe import CPU_PORT, JSON, Probe, Probing
from tests.embedded.p4rt_programs import Profiled

METER = p4r.MeterConfig(cir=5, cburst=6, pir=7, pburst=8)
RECONCILE = "RECONCILE_AND_COMMIT"
LAST, FIRST = "ProbeIngress.last_source", "ProbeIngress.first_source"


def renamed(controller: Probing) -> tuple[bytes, p4i.P4Info]:
    """The probe with another name for its register."""
    program = controller.program.replace(LAST.encode(), FIRST.encode())
    return program, but(controller.p4info, "registers.last_source.preamble.name", FIRST)


def test_reconcile_keeps_all_state(ours: Probing) -> None:
    kept, *_, gone = ordered(ours.read(ours.key("by_initial")))
    ours.delete(gone)
    ours.modify(
        ours.default("by_exact", "found_exact", 77),
        but(kept, "action", ours.action("NoAction")),
        ours.counter("seen", 3, packet_count=9),
        ours.meter(1, METER),
    )
    ours.insert(
        ours.exact(1, 2, 3, metadata=b"m", controller_metadata=4),
        ours.ternary(2, 3, 5, 6),
        ours.entry("by_metered", {"a": 1}, "found_metered", 8, meter_config=METER),
        ours.entry("by_idle", {"a": 1}, "found_idle", 9, idle_timeout_ns=3600 * 10**9),
        multicast_group(4, (CPU_PORT, 1), (CPU_PORT, 2)),
        clone_session(5, (CPU_PORT, 1)),
        ours.digest(),
    )
    ours.send(Probe(a=1, b=2))
    before = everything(ours)
    assert ours.counts(ours.direct_counter(ours.exact(1, 2)))[0] == 1
    assert ours.read(ours.key("by_constant")) and ours.read(p4r.RegisterEntry())
    ours.push(action=RECONCILE, cookie=11)
    assert ours.get_pipeline().cookie.cookie == 11
    assert everything(ours) == before
    found = ours.send(Probe(a=1, b=2))
    assert (found.by_exact, found.by_ternary, found.by_metered, found.by_idle) == (3, 5, 8, 9)


def test_reconcile_is_rejected_if_it_would_drop_state(ours: Probing) -> None:
    """The old program continues with all its state."""
    info = ours.p4info
    without_counter = but(info, "direct_counters.exact_hits")
    ours.push(None, without_counter, action=RECONCILE)  # nothing has been counted
    ours.push(action=RECONCILE)
    ours.insert(ours.scoped(1, 5))
    ours.modify(ours.register(2, number(7)))
    ours.send(Probe(a=1, b=2))
    before = everything(ours)
    for changed, words in (
        (but(info, "tables.by_scoped"), "there is no table"),
        (but(info, "tables.by_scoped.match_fields.0.name", "other"), "by_scoped"),
        (but(info, "actions.found_scoped.params.0.name", "other"), "found_scoped"),
        (without_counter, "table 'ProbeIngress.by_exact' has no direct counter"),
    ):
        message = refused(Code.INVALID_ARGUMENT, ours.push, None, changed, action=RECONCILE)
        assert "cannot be preserved; the old program stays" in message and words in message
    message = refused(Code.INVALID_ARGUMENT, ours.push, *renamed(ours), action=RECONCILE)
    assert f"register '{LAST}' (4 cells, 48 bits) is gone in the new program" in message
    assert everything(ours) == before
    assert ours.send(Probe(a=1)).by_scoped == 5
    ours.modify(ours.register(value=number(0)))  # nothing in it
    ours.push(*renamed(ours), action=RECONCILE)
    assert ours.send(Probe(a=1)).by_scoped == 5


def test_reconcile_stops_forwarding_only_to_copy_state(ours: Probing, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused program does not stop it, and no Python object is made for each cell."""
    ours.modify(ours.register(2, number(7)), ours.counter("seen", 3, packet_count=9), ours.meter(1, METER))
    before = everything(ours)
    stops: list[Switch] = []
    stop = Switch.stop

    def counted(switch: Switch) -> None:
        stops.append(switch)
        stop(switch)

    def unwanted(*_: Any) -> Any:
        raise AssertionError("an object for each cell")

    with monkeypatch.context() as patched:
        patched.setattr(Switch, "stop", counted)
        for of, name in ((Switch, "register_read_all"), (Switch, "counter_read_all"), (Meters, "read")):
            patched.setattr(of, name, unwanted)
        refused(Code.INVALID_ARGUMENT, ours.push, *renamed(ours), action=RECONCILE)
        assert not stops
        ours.push(action=RECONCILE)
        assert stops
    assert everything(ours) == before
    assert ours.send(Probe(b=4)).b == 4


def test_arrays_are_copied_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "PART_BYTES", 24)  # one cell of the counter, three of the register
    with Switch.load(JSON) as old, Switch.load(JSON) as new:
        counter = "ProbeIngress.seen"
        cells = [CounterValue(index, 2 * index + 1) for index in range(old.program.counters[counter].size)]
        assert len(cells) > 2 and not old.counter_used(counter) and not old.register_used(LAST)
        for index, cell in enumerate(cells):
            old.counter_write(counter, index, cell)
        old.register_write(LAST, 3, 0xFFFF_FFFF_FFFF)
        assert old.counter_used(counter) and old.register_used(LAST)
        new.counter_copy(counter, old)
        new.register_copy(LAST, old)
        assert new.counter_read_all(counter) == cells
        assert new.register_read_all(LAST) == [0, 0, 0, 0xFFFF_FFFF_FFFF]


def test_reconcile_without_a_running_program_commits(fresh: Target) -> None:
    """The switch's first program; a request without a program is refused."""
    with fresh.controller() as controller:
        controller.become_primary()
        refused(Code.INVALID_ARGUMENT, controller.push_nothing, RECONCILE)
        controller.push(action=RECONCILE)
        assert controller.send(Probe(b=4)).b == 4


@pytest.mark.parametrize("how", ["members", "one shot"])
def test_reconcile_keeps_selectors(target: Target, how: str) -> None:
    """On BMv2 too, except one-shot action sets: it looks for members, and then refuses."""
    if (target.name, how) == ("bmv2", "one shot"):
        pytest.skip("simple_switch_grpc does not reconcile action sets in one shot: it looks for members")
    with Profiled(target) as profiled:
        if how == "members":
            profiled.insert(*(profiled.member("spreader", id_, "second", 100 + id_) for id_ in (1, 2)))
            profiled.insert(profiled.group(5, (1, 1), (2, 1)))
            profiled.insert(profiled.indirect("by_group", 9, group=5))
        else:
            profiled.insert(profiled.one_shot(9, ("second", 101, 1), ("second", 102, 1)))
        sent, entries = profiled.spread(9, 20), profiled.read(profiled.key("by_group"))
        assert set(sent) == {101, 102}
        profiled.push(action=RECONCILE)
        assert ordered(profiled.read(profiled.key("by_group"))) == ordered(entries)

        def forwards() -> bool:
            try:
                return profiled.spread(9, 20) == sent
            except grpc.RpcError:
                return False

        until(forwards, "it forwards as before")
