"""Setting and getting forwarding pipeline configurations; P4Infos and device configs that do not fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from finsy.proto import p4i, p4r

from tests.switch.conftest import Target, embedded_target
from tests.switch.p4rt_controller import Code, Controller, WriteFailed, load_p4info
from tests.switch.p4rt_probe import JSON, P4INFO, Probe
from tests.switch.refusals import refused

SERENE = Path(__file__).parents[2] / "p4src" / "build" / "serene.json"


def test_nothing_works_without_a_configuration(target: Target) -> None:
    """First in this file: the switch is new, and BMv2 cannot be emptied again."""
    controller = target.controller()
    stream = controller.become_primary()
    for call in (controller.read, controller.get_pipeline):
        error = refused(call)
        assert error.code() is Code.FAILED_PRECONDITION
        assert "no forwarding pipeline config" in error.details().lower()  # finsy looks for these words
    with pytest.raises(WriteFailed) as failed:
        controller.write()
    assert failed.value.code is Code.FAILED_PRECONDITION
    if target.name == "embedded":  # BMv2 says nothing
        controller.packet_out(stream, b"x")
        assert stream.receive("error").canonical_code == Code.FAILED_PRECONDITION.value[0]
    controller.close()


def test_what_was_set_is_what_is_got(controller: Controller) -> None:
    controller.become_primary()
    controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes(), cookie=0xFEED)
    everything = controller.get_pipeline("ALL")
    assert everything.p4info == controller.p4info
    assert everything.p4_device_config == JSON.read_bytes()
    assert everything.cookie.cookie == 0xFEED

    cookie = controller.get_pipeline("COOKIE_ONLY")
    assert (cookie.cookie.cookie, cookie.HasField("p4info"), cookie.p4_device_config) == (0xFEED, False, b"")
    info = controller.get_pipeline("P4INFO_AND_COOKIE")
    assert (info.cookie.cookie, info.p4info, info.p4_device_config) == (0xFEED, controller.p4info, b"")
    device = controller.get_pipeline("DEVICE_CONFIG_AND_COOKIE")
    assert (device.cookie.cookie, device.HasField("p4info")) == (0xFEED, False)
    assert device.p4_device_config == JSON.read_bytes()


def test_a_program_in_p4langs_wrapping(controller: Controller) -> None:
    """p4.tmp.P4DeviceConfig: reassign, then the JSON as device_data; it is got as it was set."""
    controller.become_primary()
    length, rest = [], len(JSON.read_bytes())
    while rest >= 0x80:
        length.append(rest & 0x7F | 0x80)
        rest >>= 7
    wrapped = b"\x08\x01\x1a" + bytes([*length, rest]) + JSON.read_bytes()
    controller.set_pipeline("VERIFY_AND_COMMIT", wrapped)
    controller.insert(controller.entry("by_exact", {"a": 1, "b": 2}, "found_exact", 7))
    assert len(controller.read(p4r.TableEntry(table_id=controller.id("tables", "by_exact")))) == 1


def test_no_cookie_is_no_cookie(primary: Controller) -> None:
    assert not primary.get_pipeline("ALL").HasField("cookie")


def test_a_new_program_begins_empty(primary: Controller) -> None:
    entry = primary.entry("by_scoped", {"a": 1}, "found_scoped", 1)
    primary.insert(entry)
    primary.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
    assert primary.read(primary.key("by_scoped")) == []
    primary.insert(entry)


def test_verify_changes_nothing(embedded_primary: Controller) -> None:
    entry = embedded_primary.entry("by_scoped", {"a": 1}, "found_scoped", 1)
    embedded_primary.insert(entry)
    embedded_primary.set_pipeline("VERIFY", JSON.read_bytes(), cookie=5)
    assert embedded_primary.read(embedded_primary.key("by_scoped")) == [entry]
    assert not embedded_primary.get_pipeline().HasField("cookie")


def test_a_refused_program_leaves_the_old_one_running(embedded: Target) -> None:
    controller = embedded.controller()
    stream = controller.become_primary()
    controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
    controller.insert(controller.entry("by_scoped", {"a": 1}, "found_scoped", 5))
    assert refused(lambda: controller.set_pipeline("VERIFY_AND_COMMIT", b"{}")).code() is Code.INVALID_ARGUMENT
    controller.packet_out(stream, Probe(a=1).frame())
    assert Probe.parse(stream.receive("packet").payload).by_scoped == 5
    controller.close()


def test_a_saved_program_is_filled_before_it_runs(embedded: Target) -> None:
    """Writes after VERIFY_AND_SAVE go to the saved program; COMMIT starts it with them."""
    controller = embedded.controller()
    stream = controller.become_primary()
    controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
    controller.insert(controller.entry("by_scoped", {"a": 1}, "found_scoped", 5))
    controller.set_pipeline("VERIFY_AND_SAVE", JSON.read_bytes(), cookie=9)
    assert controller.read(controller.key("by_scoped")) == []
    controller.insert(controller.entry("by_scoped", {"a": 1}, "found_scoped", 6))

    controller.packet_out(stream, Probe(a=1).frame())
    assert Probe.parse(stream.receive("packet").payload).by_scoped == 5  # the old one still
    controller.set_pipeline("COMMIT")
    controller.packet_out(stream, Probe(a=1).frame())
    assert Probe.parse(stream.receive("packet").payload).by_scoped == 6
    assert controller.get_pipeline("COOKIE_ONLY").cookie.cookie == 9
    controller.close()


def test_commit_needs_a_saved_program(embedded_primary: Controller) -> None:
    assert refused(lambda: embedded_primary.set_pipeline("COMMIT")).code() is Code.NOT_FOUND
    embedded_primary.set_pipeline("VERIFY_AND_SAVE", JSON.read_bytes())
    error = refused(lambda: embedded_primary.set_pipeline("COMMIT", JSON.read_bytes()))
    assert error.code() is Code.INVALID_ARGUMENT
    embedded_primary.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())  # drops the saved one
    assert refused(lambda: embedded_primary.set_pipeline("COMMIT")).code() is Code.NOT_FOUND


def test_an_action_that_is_none(embedded_primary: Controller) -> None:
    error = refused(lambda: embedded_primary.set_pipeline("UNSPECIFIED", JSON.read_bytes()))
    assert error.code() is Code.INVALID_ARGUMENT and "RECONCILE_AND_COMMIT" in error.details()


# -- device configs that are none -----------------------------------------------------------------------------


def _without(data: bytes, *keys: str) -> bytes:
    return json.dumps({key: value for key, value in json.loads(data).items() if key not in keys}).encode()


@pytest.mark.parametrize(
    ("device_config", "words"),
    [
        (b"", "device config"),
        (b"\x7fELF", "not JSON"),
        (b"[]", "BMv2"),
        (_without(JSON.read_bytes(), "parsers"), "parsers"),
        (b'{"header_types": 1}', "BMv2"),
    ],
    ids=["empty", "binary", "list", "no-parsers", "wrong-types"],
)
@pytest.mark.parametrize("action", ["VERIFY", "VERIFY_AND_SAVE", "VERIFY_AND_COMMIT"])
def test_device_configs_that_are_not_bmv2s(
    embedded_primary: Controller, action: str, device_config: bytes, words: str
) -> None:
    error = refused(lambda: embedded_primary.set_pipeline(action, device_config))
    assert error.code() is Code.INVALID_ARGUMENT
    assert words in error.details()


# -- P4Infos that do not fit ----------------------------------------------------------------------------------


def _table(info: p4i.P4Info, alias: str) -> p4i.Table:
    found: p4i.Table = next(table for table in info.tables if table.preamble.alias == alias)
    return found


def _rename_table(info: p4i.P4Info) -> None:
    _table(info, "by_lpm").preamble.name = "ProbeIngress.elsewhere"


def _widen_key(info: p4i.P4Info) -> None:
    _table(info, "by_exact").match_fields[1].bitwidth = 17


def _other_kind(info: p4i.P4Info) -> None:
    _table(info, "by_exact").match_fields[0].match_type = p4i.MatchField.TERNARY


def _fewer_keys(info: p4i.P4Info) -> None:
    del _table(info, "by_exact").match_fields[1]


def _foreign_action(info: p4i.P4Info) -> None:
    _table(info, "by_exact").action_refs[0].id = _table(info, "by_lpm").action_refs[0].id


def _missing_action(info: p4i.P4Info) -> None:
    _table(info, "by_exact").action_refs[0].id = 0x01ABCDEF


def _widen_parameter(info: p4i.P4Info) -> None:
    action = next(action for action in info.actions if action.preamble.alias == "found_exact")
    action.params[0].bitwidth = 48


def _rename_counter(info: p4i.P4Info) -> None:
    info.counters[0].preamble.name = "ProbeIngress.unseen"


def _longer_counter(info: p4i.P4Info) -> None:
    info.counters[0].size = 80


def _rename_meter(info: p4i.P4Info) -> None:
    info.meters[0].preamble.name = "ProbeIngress.speed"


def _rename_register(info: p4i.P4Info) -> None:
    info.registers[0].preamble.name = "ProbeIngress.first_source"


def _misplaced_direct_counter(info: p4i.P4Info) -> None:
    counter = next(item for item in info.direct_counters if item.preamble.alias == "exact_hits")
    counter.direct_table_id = _table(info, "by_lpm").preamble.id


def _rename_digest(info: p4i.P4Info) -> None:
    info.digests[0].preamble.name = "forgotten_t"


def _widen_digest(info: p4i.P4Info) -> None:
    info.type_info.structs["learned_t"].members[1].type_spec.bitstring.bit.bitwidth = 16


def _twice_the_id(info: p4i.P4Info) -> None:
    info.tables[1].preamble.id = info.tables[0].preamble.id


def _add_profile(info: p4i.P4Info) -> None:
    info.action_profiles.add(size=4).preamble.name = "ProbeIngress.ecmp"


@pytest.mark.parametrize(
    ("change", "culprits"),
    [
        (_rename_table, ["ProbeIngress.elsewhere", "ProbeIngress.by_lpm"]),
        (_widen_key, ["ProbeIngress.by_exact", "17", "16"]),
        (_other_kind, ["ProbeIngress.by_exact", "ternary 8 bits", "exact 8 bits"]),
        (_fewer_keys, ["ProbeIngress.by_exact"]),
        (_foreign_action, ["ProbeIngress.by_exact", "ProbeIngress.found_lpm", "ProbeIngress.found_exact"]),
        (_missing_action, ["ProbeIngress.by_exact", str(0x01ABCDEF)]),
        (_widen_parameter, ["ProbeIngress.found_exact", "48", "16"]),
        (_rename_counter, ["ProbeIngress.unseen", "ProbeIngress.seen"]),
        (_longer_counter, ["ProbeIngress.seen", "80", "8"]),
        (_rename_meter, ["ProbeIngress.speed", "ProbeIngress.rate"]),
        (_rename_register, ["ProbeIngress.first_source", "ProbeIngress.last_source"]),
        (_misplaced_direct_counter, ["ProbeIngress.exact_hits", "ProbeIngress.by_exact", "ProbeIngress.by_lpm"]),
        (_rename_digest, ["forgotten_t", "learned_t"]),
        (_widen_digest, ["learned_t", "16", "9"]),
        (_twice_the_id, ["ProbeIngress.by_"]),
        (_add_profile, ["ProbeIngress.ecmp"]),
    ],
    ids=lambda value: value.__name__.strip("_") if callable(value) else "",
)
def test_a_p4info_that_does_not_fit_names_the_culprit(
    embedded_primary: Controller, change: Callable[[p4i.P4Info], None], culprits: list[str]
) -> None:
    info = load_p4info(P4INFO)
    change(info)
    for action in ("VERIFY", "VERIFY_AND_COMMIT"):
        error = refused(partial(embedded_primary.set_pipeline, action, JSON.read_bytes(), info))
        assert error.code() is Code.INVALID_ARGUMENT
        assert all(culprit in error.details() for culprit in culprits), error.details()
    embedded_primary.read(embedded_primary.key("by_exact"))  # the old one is still there


def test_the_p4info_of_another_program(embedded_primary: Controller) -> None:
    error = refused(lambda: embedded_primary.set_pipeline("VERIFY", SERENE.read_bytes()))
    assert error.code() is Code.INVALID_ARGUMENT
    assert "ProbeIngress.by_exact" in error.details()


def test_a_p4info_may_leave_objects_out(embedded_primary: Controller) -> None:
    info = load_p4info(P4INFO)
    for objects in (info.tables, info.digests, info.direct_counters, info.direct_meters, info.registers):
        del objects[:]
    embedded_primary.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes(), info)
    assert embedded_primary.read(p4r.TableEntry()) == []


def test_what_the_engine_lacks_is_refused_by_name(embedded_primary: Controller) -> None:
    error = refused(lambda: embedded_primary.set_pipeline("VERIFY", _with_extern(JSON.read_bytes())))
    assert error.code() is Code.INVALID_ARGUMENT and "'my_extern'" in error.details()


def _with_extern(data: bytes) -> bytes:
    program = json.loads(data)
    program["extern_instances"] = [{"name": "my_extern", "id": 0, "type": "mystery"}]
    return json.dumps(program).encode()


def test_a_program_without_a_p4info_cannot_be_controlled() -> None:
    """``serene-switch program.json``: it runs, and says so, until a controller sets a configuration."""
    from serene.switch import Switch
    from serene.switch.p4runtime import P4RuntimeServer

    with P4RuntimeServer([], address="127.0.0.1:0", device_id=7, program=Switch.load(JSON)) as server:
        controller = Target("embedded", f"127.0.0.1:{server.port}").controller()
        controller.become_primary()
        error = refused(controller.read)
        assert error.code() is Code.FAILED_PRECONDITION
        assert "a program without a P4Info" in error.details()
        controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
        assert controller.read(controller.default("by_keyless"))
        controller.close()


def test_large_configurations_fit() -> None:
    """gRPC's own limit is 4 MiB."""
    with embedded_target() as target:
        controller = target.controller()
        controller.become_primary()
        controller.set_pipeline("VERIFY", JSON.read_bytes() + b" " * (8 << 20))
        controller.close()
