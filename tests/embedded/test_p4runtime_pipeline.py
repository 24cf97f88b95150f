"""Setting and getting forwarding pipeline configurations; P4Infos and device configs that do not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from finsy.proto import p4i, p4r

from serene.embedded import Switch, load_program
from serene.embedded.p4runtime import P4RuntimeServer
from serene.embedded.p4runtime.pipeline import Schema
from serene.embedded.p4runtime.status import Failure
from tests.embedded.conftest import Target
from tests.embedded.p4rt_controller import GONE, Code, alias, but, load_p4info, number, refused
from tests.embedded.p4rt_probe import CPU_PORT, JSON, P4INFO, SOURCE, Probe, Probing
from tests.embedded.p4rt_programs import PROFILES, VALUE_SETS

SERENE = Path(__file__).parents[2] / "p4src" / "build" / "serene.json"


def test_requests_without_a_pipeline_config_are_refused(target: Target, controller: Probing) -> None:
    """First in this file: the switch is new, and BMv2 cannot be emptied again."""
    controller.become_primary()
    for call in (controller.read, controller.get_pipeline):
        message = refused(Code.FAILED_PRECONDITION, call)
        assert "no forwarding pipeline config" in message.lower()  # finsy looks for these words
    refused(Code.FAILED_PRECONDITION, controller.write)
    if target.name == "embedded":  # BMv2 prints nothing
        controller.packet_out(b"x")
        assert controller.messages.receive("error").canonical_code == Code.FAILED_PRECONDITION.value[0]


def test_pipeline_config_reads_back_as_set(primary: Probing) -> None:
    assert not primary.get_pipeline("ALL").HasField("cookie")
    primary.push(cookie=0xFEED)
    info, program = primary.p4info, primary.program
    for kind, has_info, has_program in (
        ("ALL", True, True),
        ("COOKIE_ONLY", False, False),
        ("P4INFO_AND_COOKIE", True, False),
        ("DEVICE_CONFIG_AND_COOKIE", False, True),
    ):
        got = primary.get_pipeline(kind)
        assert (got.cookie.cookie, got.HasField("p4info")) == (0xFEED, has_info)
        assert not has_info or got.p4info == info
        assert got.p4_device_config == (program if has_program else b"")


def test_program_wrapped_as_p4deviceconfig_is_accepted(primary: Probing) -> None:
    """p4.tmp.P4DeviceConfig holds reassign, then the JSON as device_data; it is read back as it was set."""
    length, rest = [], len(primary.program)
    while rest >= 0x80:
        length.append(rest & 0x7F | 0x80)
        rest >>= 7
    primary.push(b"\x08\x01\x1a" + bytes([*length, rest]) + primary.program)
    primary.insert(primary.exact(1, 2))
    assert len(primary.read(primary.key("by_exact"))) == 1


def test_new_program_begins_without_entries(primary: Probing) -> None:
    entry = primary.scoped(1, 1)
    primary.insert(entry)
    primary.push()
    assert primary.read(primary.scoped(1)) == []
    primary.insert(entry)


def test_verified_or_rejected_pipeline_config_changes_nothing(ours: Probing) -> None:
    entry = ours.scoped(1, 5)
    ours.insert(entry)
    ours.push(action="VERIFY", cookie=5)
    assert "RECONCILE_AND_COMMIT" in refused(Code.INVALID_ARGUMENT, ours.push, action="UNSPECIFIED")
    refused(Code.INVALID_ARGUMENT, ours.push, b"{}")
    assert ours.read(ours.key("by_scoped")) == [entry]
    assert not ours.get_pipeline().HasField("cookie")
    assert ours.send(Probe(a=1)).by_scoped == 5


def test_saved_program_takes_entries_before_it_runs(ours: Probing) -> None:
    """Writes after VERIFY_AND_SAVE go to the saved program; COMMIT starts it with them."""
    refused(Code.NOT_FOUND, ours.push_nothing)
    ours.insert(ours.scoped(1, 5))
    ours.push(action="VERIFY_AND_SAVE", cookie=9)
    assert ours.read(ours.key("by_scoped")) == []
    ours.insert(ours.scoped(1, 6))
    assert ours.send(Probe(a=1)).by_scoped == 5  # the old one still
    refused(Code.INVALID_ARGUMENT, ours.push, action="COMMIT")  # with a program
    ours.push_nothing()
    assert ours.send(Probe(a=1)).by_scoped == 6
    assert ours.get_pipeline("COOKIE_ONLY").cookie.cookie == 9
    ours.push(action="VERIFY_AND_SAVE")
    ours.push()  # drops the saved one
    refused(Code.NOT_FOUND, ours.push_nothing)


# -- what does not fit ----------------------------------------------------------------------------------------


def _program(*without: str, **more: object) -> bytes:
    """The probe's program, changed."""
    program = {key: value for key, value in json.loads(JSON.read_text()).items() if key not in without}
    return json.dumps(program | more).encode()


@pytest.mark.parametrize("action", ["VERIFY", "VERIFY_AND_SAVE", "VERIFY_AND_COMMIT"])
def test_bad_device_configs_are_refused(ours: Probing, action: str) -> None:
    for config, words in (
        (b"", "device config"),
        (b"\x7fELF", "not JSON"),
        (b"[]", "BMv2"),
        (_program("parsers"), "parsers"),
        (b'{"header_types": 1}', "BMv2"),
        (_program(extern_instances=[{"name": "my_extern", "id": 0, "type": "mystery"}]), "'my_extern'"),
        (SERENE.read_bytes(), "ProbeIngress.by_exact"),  # another P4Info's
    ):
        assert words in refused(Code.INVALID_ARGUMENT, ours.push, config, action=action)


INFO = load_p4info(P4INFO)
TABLES, ACTIONS = ({alias(item): item.preamble.id for item in items} for items in (INFO.tables, INFO.actions))
BY_EXACT, LEARNED = "ProbeIngress.by_exact", "type_info.structs.learned_t.members"
WIDTH = "controller_packet_metadata.0.metadata.0.bitwidth"


@pytest.mark.parametrize(("program", "path", "value", "words"), [
    (JSON, "tables.by_lpm.preamble.name", "ProbeIngress.elsewhere", ["ProbeIngress.elsewhere", "ProbeIngress.by_lpm"]),
    (JSON, "tables.by_exact.match_fields.1.bitwidth", 17, [BY_EXACT, "17", "16"]),
    (JSON, "tables.by_exact.match_fields.0.match_type", p4i.MatchField.TERNARY,
     [BY_EXACT, "ternary 8 bits", "exact 8 bits"]),
    (JSON, "tables.by_exact.match_fields.1", GONE, [BY_EXACT]),
    (JSON, "tables.by_exact.action_refs.0.id", ACTIONS["found_lpm"],
     [BY_EXACT, "ProbeIngress.found_lpm", "ProbeIngress.found_exact"]),
    (JSON, "tables.by_exact.action_refs.0.id", 0x01ABCDEF, [BY_EXACT, str(0x01ABCDEF)]),
    (JSON, "actions.found_exact.params.0.bitwidth", 48, ["ProbeIngress.found_exact", "48", "16"]),
    (JSON, "counters.seen.preamble.name", "ProbeIngress.unseen", ["ProbeIngress.unseen", "ProbeIngress.seen"]),
    (JSON, "counters.seen.size", 80, ["ProbeIngress.seen", "80", "8"]),
    (JSON, "meters.rate.preamble.name", "ProbeIngress.speed", ["ProbeIngress.speed", "ProbeIngress.rate"]),
    (JSON, "registers.last_source.preamble.name", "ProbeIngress.first_source",
     ["ProbeIngress.first_source", "ProbeIngress.last_source"]),
    (JSON, "direct_counters.exact_hits.direct_table_id", TABLES["by_lpm"],
     ["ProbeIngress.exact_hits", BY_EXACT, "ProbeIngress.by_lpm"]),
    (JSON, "digests.0.preamble.name", "forgotten_t", ["forgotten_t", "learned_t"]),
    (JSON, f"{LEARNED}.1.type_spec.bitstring.bit.bitwidth", 16, ["learned_t", "16", "9"]),
    (JSON, f"{LEARNED}.1.type_spec.struct.name", "learned_t", ["nested"]),  # a type that holds itself
    (JSON, "tables.by_lpm.preamble.id", INFO.tables[0].preamble.id, ["ProbeIngress.by_"]),
    (JSON, "action_profiles.+.preamble.name", "ProbeIngress.ecmp", ["ProbeIngress.ecmp"]),
    (JSON, WIDTH, 2**31 - 1, ["bits"]),
    (JSON, WIDTH, -1, ["bits"]),
    (PROFILES, "action_profiles.spreader.size", 77, ["spreader' has 77 members in the P4Info and 8 in the program"]),
    (PROFILES, "action_profiles.spreader.with_selector", False, ["spreader' has a selector only in"]),
    (PROFILES, "tables.by_group.implementation_id", 0, ["by_group' has the action profile '", "spreader'"]),
    (VALUE_SETS, "value_sets.kinds.match.0.bitwidth", 17, ["kinds' has 17 bits in the P4Info and 16"]),
])  # fmt: skip
def test_p4info_that_does_not_fit_is_refused_by_name(program: Path, path: str, value: Any, words: list[str]) -> None:
    info = load_p4info(program.with_suffix(".p4info.txtpb"))
    Schema(info, load_program(program))
    with pytest.raises(Failure) as refusal:
        Schema(but(info, path, value), load_program(program))
    assert refusal.value.code is Code.INVALID_ARGUMENT
    assert all(word in refusal.value.message for word in words), refusal.value.message


@pytest.mark.parametrize("fields", [0, 1])
def test_p4info_may_have_objects_that_p4c_removed(ours: Probing, fields: int) -> None:
    """A table without match fields, or that no packet reaches, with its counter and meter; an action profile that no
    other table uses; a digest that no packet causes. They have no entries."""
    info = load_p4info(P4INFO)
    table, profile = info.tables.add(size=1), info.action_profiles.add(size=8)
    table.preamble.id, table.preamble.name = 0x02ABCDEF, "ProbeIngress.inlined"
    for at in range(fields):
        table.match_fields.add(id=1 + at, name="x", bitwidth=8, match_type=p4i.MatchField.EXACT)
    profile.preamble.id, profile.preamble.name = 0x11ABCDEF, "ProbeIngress.unused"
    profile.table_ids.extend([table.preamble.id] * fields)
    counter, meter, digest = info.direct_counters.add(), info.direct_meters.add(), info.digests.add()
    for id_, item in ((0x13ABCDEF, counter), (0x15ABCDEF, meter), (0x17ABCDEF, digest)):
        item.preamble.id, item.preamble.name = id_, f"ProbeIngress.removed_{id_}"
    counter.direct_table_id = meter.direct_table_id = table.preamble.id
    digest.type_spec.bitstring.bit.bitwidth = 8
    ours.push(None, info)
    ours.read(p4r.TableEntry())
    assert ours.read(p4r.ActionProfileMember()) == []
    for absent in (
        p4r.TableEntry(table_id=table.preamble.id, is_default_action=True),
        p4r.ActionProfileMember(action_profile_id=profile.preamble.id, member_id=1),
    ):
        assert str(absent.ListFields()[0][1]) in refused(Code.UNKNOWN, ours.modify, absent)
    assert ours.get_pipeline().p4info == info
    ours.insert(p4r.DigestEntry(digest_id=digest.preamble.id))
    profile.table_ids.append(TABLES["by_lpm"])
    assert "ProbeIngress.unused" in refused(Code.INVALID_ARGUMENT, ours.push, None, info)


def test_key_without_a_width_has_the_program_s(ours: Probing) -> None:
    """p4c gives keys of the type error no width."""
    ours.push(None, but(load_p4info(P4INFO), "tables.by_exact.match_fields.1.bitwidth", 0))
    ours.insert(ours.exact(1, 0xABCD, value=3))
    assert ours.send(Probe(a=1, b=0xABCD)).by_exact == 3
    assert "16 bits" in refused(Code.UNKNOWN, ours.insert, ours.exact(1, 0x10000))


def test_digest_of_a_tuple_has_its_own_name_in_the_program(ours: Probing) -> None:
    """p4c calls it digest_0 in the P4Info."""
    info, program = load_p4info(P4INFO), json.loads(JSON.read_text())
    program["learn_lists"][0]["name"], info.digests[0].preamble.name = "tuple_0", "digest_0"
    for width in (48, 9, 16):
        info.digests[0].type_spec.tuple.members.add().bitstring.bit.bitwidth = width
    ours.push(json.dumps(program).encode(), info)
    ours.insert(ours.digest(max_list_size=1))
    ours.packet_out(Probe(b=7, digests=1), port=3)
    (data,) = ours.messages.receive("digest").data
    assert [member.bitstring for member in data.tuple.members] == [number(SOURCE), number(CPU_PORT), number(7)]


def test_digests_of_unnamed_types_are_paired_by_type_and_order() -> None:
    """Of one type, p4c has a digest for each call in the P4Info, and lists with one name in the program."""
    info, program = load_p4info(P4INFO), json.loads(JSON.read_text())
    (first,) = program["learn_lists"]
    program["learn_lists"] = [
        {**first, "id": id_, "name": name, "elements": first["elements"][:size]}
        for id_, (name, size) in enumerate(
            (("tuple_0", 3), ("tuple_1", 2), ("tuple_0", 3), ("tuple_0", 3), ("digest", 1)), 1
        )
    ]
    for place, widths in enumerate(([48, 9, 16], [48, 9, 16], [48, 9])):
        digest = info.digests.add() if place else info.digests[0]
        digest.preamble.id, digest.preamble.name = 0x17000001 + place, f"digest_{place}"
        digest.ClearField("type_spec")
        for width in widths:
            digest.type_spec.tuple.members.add().bitstring.bit.bitwidth = width
    digest = info.digests.add()
    digest.preamble.id, digest.preamble.name = 0x17000009, "digest_3"
    digest.type_spec.bitstring.bit.bitwidth = 48
    schema = Schema(info, load_program(json.dumps(program).encode()))
    assert schema.digest_names == {1: "digest_0", 2: "digest_2", 3: "digest_1", 4: "digest_0", 5: "digest_3"}
    info.digests[2].type_spec.tuple.members[1].bitstring.bit.bitwidth = 8
    with pytest.raises(Failure, match="'digest_2' is not in the program"):
        Schema(info, load_program(json.dumps(program).encode()))


def test_p4info_may_omit_objects_of_the_program(ours: Probing) -> None:
    info = load_p4info(P4INFO)
    for objects in (info.tables, info.digests, info.direct_counters, info.direct_meters, info.registers):
        del objects[:]
    ours.push(None, info)
    assert ours.read(p4r.TableEntry()) == []


def test_program_without_a_p4info_cannot_be_controlled() -> None:
    """``serene-switch program.json`` runs, and reports this until a controller sets a configuration."""
    with (
        P4RuntimeServer([], address="127.0.0.1:0", device_id=7, program=Switch.load(JSON)) as server,
        Target("embedded", f"127.0.0.1:{server.port}").controller() as controller,
    ):
        controller.become_primary()
        assert "a program without a P4Info" in refused(Code.FAILED_PRECONDITION, controller.read)
        controller.push()
        assert controller.read(controller.default("by_keyless"))


def test_large_configs_are_accepted_up_to_a_limit(ours: Probing) -> None:
    """gRPC's own limit is 4 MiB."""
    ours.push(JSON.read_bytes() + b" " * (8 << 20), action="VERIFY")
    refused(Code.RESOURCE_EXHAUSTED, ours.push, bytes(100 << 20), action="VERIFY")
    ours.push()
