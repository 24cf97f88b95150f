"""Translated types: strings and numbers of other widths at the controller, the program's numbers in packets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from finsy.proto import p4d, p4i, p4r, p4t

from serene.embedded import load_program
from serene.embedded.p4runtime.pipeline import Schema
from serene.embedded.p4runtime.status import Failure
from serene.embedded.p4runtime.strings import MOST_CHARACTERS, NoNumberLeft, StringType
from tests.embedded.conftest import Target
from tests.embedded.p4rt_controller import Code, Controller, but, load_p4info, multicast_group, number, ordered, refused
from tests.embedded.p4rt_probe import JSON, P4INFO, SOURCE, Probe, packet_metadata

STRING = p4t.P4NewTypeTranslation(uri="", sdn_string=p4t.P4NewTypeTranslation.SdnString())
DEFAULT_VRF = '@p4runtime_translation_mappings({ { "default" , 7 } , })'
TYPES = {
    "port_t": p4t.P4NewTypeSpec(translated_type=STRING),
    "vrf_t": p4t.P4NewTypeSpec(translated_type=STRING, annotations=[DEFAULT_VRF]),
    "hop_t": p4t.P4NewTypeSpec(translated_type=STRING),
    "wide_t": p4t.P4NewTypeSpec(translated_type=p4t.P4NewTypeTranslation(uri="wide", sdn_bitwidth=17)),
}


IN, OUT = "controller_packet_metadata.packet_in.metadata", "controller_packet_metadata.packet_out.metadata"
TYPED = {
    "tables.by_scoped.match_fields.a": "vrf_t", "tables.by_optional.match_fields.a": "vrf_t",
    "tables.by_idle.match_fields.a": "vrf_t", "tables.by_exact.match_fields.b": "wide_t",
    "actions.found_scoped.params.value": "hop_t", "actions.found_lpm.params.value": "hop_t",
    f"{IN}.ingress_port": "port_t", f"{OUT}.egress_port": "port_t",
}  # fmt: skip


def translated() -> p4i.P4Info:
    """The probe's P4Info with strings for ports, for the 8 bits of a (VRFs) and for what by_scoped and by_lpm find
    (next hops); with 17 bits for the 16 of b in by_exact; and without the last field of packet-ins."""
    info = load_p4info(P4INFO)
    for name, spec in TYPES.items():
        info.type_info.new_types[name].CopyFrom(spec)
    for path, name in TYPED.items():
        info = but(info, f"{path}.type_name.name", name)
        info = but(info, f"{path}.bitwidth", 17 if name == "wide_t" else 0)
    info = but(info, "type_info.structs.learned_t.members.port.type_spec.new_type.name", "port_t")
    made: p4i.P4Info = but(info, f"{IN}.2")
    return made


class Translated(Controller):
    """The primary of a switch with that P4Info."""

    def __init__(self, target: Target) -> None:
        super().__init__(target.address, target.device_id, translated(), JSON.read_bytes())
        self.become_primary()
        self.push()

    def scoped(self, vrf: str, hop: str | None = None) -> p4r.TableEntry:
        entry = p4r.TableEntry(table_id=self.id("tables", "by_scoped"))
        entry.match.add(field_id=1).exact.value = vrf.encode()
        if hop is not None:
            entry.action.action.action_id = self.id("actions", "found_scoped")
            entry.action.action.params.add(param_id=1, value=hop.encode())
        return entry

    def probe(self, probe: Probe, port: str = "255") -> tuple[Probe, dict[int, bytes]]:
        self.packet_out(probe, port)
        came = self.messages.receive("packet")
        return Probe.parse(came.payload), {item.metadata_id: item.value for item in came.metadata}

    def packet_out(self, probe: Probe, port: str = "255") -> None:
        items = packet_metadata(port=port.encode(), pad=0, mark=0)
        self.messages.send(packet=p4r.PacketOut(payload=probe.frame(), metadata=items))

    def scoped_by(self, values: range = range(256)) -> list[int]:
        """Returns what by_scoped finds for each a."""
        return [self.probe(Probe(a=a))[0].by_scoped for a in values]

    def vrfs(self) -> set[bytes]:
        """The keys that are read of by_scoped."""
        return {bytes(entry.match[0].exact.value) for entry in self.read(self.key("by_scoped"))}


@pytest.fixture
def client(embedded: Target) -> Iterator[Translated]:
    with Translated(embedded) as client:
        yield client


def test_strings_are_translated_to_numbers_in_packets(client: Translated) -> None:
    client.insert(client.scoped("33", "1000"), client.scoped("", "red"), client.scoped("default", "blue"))
    assert client.probe(Probe(a=33))[0].by_scoped == 1000  # digits stand for their number
    blue, red = (client.probe(Probe(a=a))[0].by_scoped for a in (7, 0))  # as the P4Info says, and the empty string
    assert blue != red and 1000 not in (blue, red) and min(blue, red) > 60_000
    client.insert(client.scoped("green", "blue"))
    assert [a for a, found in enumerate(client.scoped_by()) if found == blue] == [7, 255]


def test_translated_strings_are_read_as_written(client: Translated) -> None:
    written = [client.scoped("33", "1000"), client.scoped("default", "blue"), client.scoped("café", "")]
    client.insert(*written)
    assert ordered(client.read(client.key("by_scoped"))) == ordered(written)
    assert client.read(client.scoped("café")) == [written[2]]
    assert client.read(client.scoped("elsewhere")) == []
    client.modify(client.scoped("café", "blue"))
    client.delete(client.scoped("33"))
    assert ordered(client.read(client.key("by_scoped"))) == ordered([client.scoped("café", "blue"), written[1]])


def test_short_strings_are_not_taken_for_numbers(client: Translated) -> None:
    """The engine reads entries of numbers itself; these strings have the size of numbers."""
    client.insert(*(client.scoped(vrf, hop) for vrf, hop in (("a", "b"), ("1", "2"), ("b", "a"))))
    assert [client.probe(Probe(a=a))[0].by_scoped for a in (1, ord("a"), ord("1"))] == [2, 0xFFFF, 0xFFFF]
    client.modify(client.scoped("1", "7"))
    assert client.probe(Probe(a=1))[0].by_scoped == 7
    client.delete(client.scoped("1"))
    assert client.vrfs() == {b"a", b"b"}
    entry = client.key("by_lpm", {"address": (10 << 24, 8)})  # as a parameter alone
    entry.action.action.action_id = client.id("actions", "found_lpm")
    entry.action.action.params.add(param_id=1, value=b"2")
    client.insert(entry)
    assert client.read(client.key("by_lpm")) == [entry]
    assert client.probe(Probe(address=10 << 24))[0].by_lpm == 2


def test_optional_match_translates_a_string(client: Translated) -> None:
    entry = p4r.TableEntry(table_id=client.id("tables", "by_optional"), priority=1)
    entry.match.add(field_id=2).optional.value = b"some vrf"
    entry.action.CopyFrom(client.action("found_optional", 5))
    client.insert(entry)
    assert client.read(client.key("by_optional")) == [entry]
    assert [client.probe(Probe(a=a))[0].by_optional for a in (255, 254)] == [5, 0]


def test_ports_in_packets_replicas_and_digests_are_translated(client: Translated) -> None:
    """The P4Info omits the last field of packet-ins, which the program fills."""
    _, metadata = client.probe(Probe(port=255))
    assert metadata == {1: b"255", 2: b"\x00"}
    client.packet_out(Probe(), "Ethernet0")
    assert "there is no port 'Ethernet0'" in client.messages.receive("error").message
    group = multicast_group(3, port=b"255", instance=9)
    client.insert(group)
    assert client.read(p4r.PacketReplicationEngineEntry()) == [group]
    client.probe(Probe(group=3))  # comes back to the CPU port
    config = p4r.DigestEntry.Config(max_list_size=1)
    client.insert(p4r.DigestEntry(digest_id=client.id("digests", "learned_t"), config=config))
    client.packet_out(Probe(digests=1, b=4))
    came = [client.messages.next_message() for _ in range(2)]
    (digest,) = (message.digest for message in came if message.HasField("digest"))
    members = [p4d.P4Data(bitstring=value) for value in (number(SOURCE), b"255", number(4))]
    assert list(digest.data) == [p4d.P4Data(struct=p4d.P4StructLike(members=members))]


def test_idle_notification_carries_translated_strings(client: Translated) -> None:
    entry = p4r.TableEntry(table_id=client.id("tables", "by_idle"), idle_timeout_ns=1_000_000)
    entry.match.add(field_id=1).exact.value = b"quiet"
    entry.action.CopyFrom(client.action("found_idle", 5))
    client.insert(entry)
    notification = client.messages.receive("idle_timeout_notification")
    assert notification.table_entry[0].match[0].exact.value == b"quiet"
    client.delete(entry)  # or the next test's controller hears of it


def test_numbers_of_another_width_are_translated(client: Translated) -> None:
    entry = client.entry("by_exact", {"a": 1, "b": 0xFFFF}, "found_exact", 77)
    client.insert(entry)
    assert client.read(client.key("by_exact")) == [entry]
    assert client.probe(Probe(a=1, b=0xFFFF))[0].by_exact == 77
    assert client.get_pipeline().p4info == translated()  # as it was set


def test_numbers_of_deleted_strings_are_reused(client: Translated) -> None:
    """A controller may use new strings for ever, but with 8 bits only 256 at a time."""
    for start in range(0, 600, 100):
        entries = [client.scoped(f"vrf {start + i}", "1") for i in range(100)]
        client.insert(*entries)
        client.delete(*entries)
    client.insert(*(client.scoped(f"last {i}", "1") for i in range(255)))  # "default" is one, too
    message = client.outcome("INSERT", client.scoped("one more", "1"))[1]
    assert "all 256 values of type 'vrf_t' are in use" in message
    client.delete(client.scoped("last 3"))
    client.insert(client.scoped("one more", "1"))
    assert len(client.vrfs()) == 255


def test_strings_keep_their_numbers_after_reconcile(client: Translated) -> None:
    client.insert(*(client.scoped(vrf, "5") for vrf in ("one", "two", "three")))
    client.delete(client.scoped("two"))
    before = client.scoped_by()
    assert before.count(5) == 2
    client.push(action="RECONCILE_AND_COMMIT")
    assert client.scoped_by() == before
    assert client.vrfs() == {b"one", b"three"}


def test_bad_translated_values_are_refused(client: Translated) -> None:
    entry = client.scoped("", "1")
    wide = client.entry("by_exact", {"a": 1, "b": 0x1FFFF}, "found_exact", 77)
    for bad, words in (
        (but(entry, "match.0.exact.value", b"\xff"), "is not UTF-8"),
        (but(entry, "match.0.exact.value", b"x" * (MOST_CHARACTERS + 1)), "at most 1024"),
        (but(entry, "match.0.ternary.value", b"x"), "strings are matched as exact or optional"),
        (wide, "does not fit 16 bits"),
    ):
        assert words in client.outcome("INSERT", bad)[1]


def test_packet_in_header_missing_in_the_program_is_refused(client: Translated) -> None:
    info = translated()
    info.controller_packet_metadata[0].metadata[0].name = "elsewhere"
    message = refused(Code.INVALID_ARGUMENT, client.push, None, info, action="VERIFY")
    assert "the program has no header with its fields" in message


def test_program_without_packet_headers_is_accepted() -> None:
    """SAI's, compiled without its parts for BMv2, and sonic-pins' parser tests: only the P4Info has them."""
    info = translated()
    for kind in info.controller_packet_metadata:
        for at, field in enumerate(kind.metadata):
            field.name = f"elsewhere_{at}"
    translation = Schema(info, load_program(JSON)).translation
    assert (translation.packet_in.bytes, translation.packet_in.unpack(b"")) == (0, [])
    assert translation.packet_out.pack([]) == b""
    with pytest.raises(Failure, match=r"packet-out metadata \[1\]; expected none"):
        translation.packet_out.pack([p4r.PacketMetadata(metadata_id=1, value=b"1")])


def test_translated_ports_may_be_interface_names() -> None:
    schema = Schema(translated(), load_program(JSON), {"eth1": 4})
    port = schema.translation.port
    assert port is not None and port.number(b"eth1", "") == 4 and port.string(4) == b"eth1"
    assert port.number(b"4", "") == 4 and port.number(b"510", "") == 510
    with pytest.raises(Failure, match="no port '512'; expected a port's number, or eth1"):
        port.number(b"512", "")


def test_translation_never_assigns_a_number_in_use() -> None:
    names = StringType("t", 2, None, ())
    assert [names.number(text, "") for text in (b"x", b"3", b"0", b"")] == [3, 2, 0, 1]
    assert [names.string(value) for value in range(4)] == [b"0", b"", b"3", b"x"]
    with pytest.raises(NoNumberLeft):
        names.number(b"y", "")
    names.keep({0, 1, 2})
    assert names.number(b"y", "") == 3
