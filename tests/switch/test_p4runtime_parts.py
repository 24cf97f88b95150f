"""Answers are cut by their bytes, too."""

from __future__ import annotations

from finsy.proto import p4d, p4i, p4r

from serene.switch.p4runtime.digests import DigestLists
from serene.switch.p4runtime.parts import MESSAGE_BYTES, MESSAGE_ITEMS, parts_of
from tests.switch.conftest import embedded_target
from tests.switch.p4rt_controller import load_p4info
from tests.switch.p4rt_probe import JSON, P4INFO

CLIENT_BYTES = 4 << 20  # that one of gRPC takes unless told otherwise


def entries(count: int, metadata_bytes: int) -> list[p4r.TableEntry]:
    return [p4r.TableEntry(table_id=number, metadata=bytes(metadata_bytes)) for number in range(1, count + 1)]


def test_parts_are_all_of_it_in_order() -> None:
    for given in ([], entries(1, 0), entries(MESSAGE_ITEMS + 1, 0), entries(100, 1 << 15), entries(2, 2 << 20)):
        parts = list(parts_of(given))
        assert [entry for part in parts for entry in part] == given
        assert all(part for part in parts)
        assert all(len(part) == 1 or p4r.ReadResponse(
            entities=[p4r.Entity(table_entry=entry) for entry in part]
        ).ByteSize() < 2 * MESSAGE_BYTES for part in parts)  # fmt: skip
    assert [len(part) for part in parts_of(entries(MESSAGE_ITEMS + 1, 0))] == [MESSAGE_ITEMS, 1]


def test_large_groups_are_read_in_messages_that_clients_take() -> None:
    with embedded_target() as target:
        controller = target.controller()
        controller.become_primary()
        controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
        groups = [
            p4r.MulticastGroupEntry(
                multicast_group_id=group,
                replicas=[p4r.Replica(egress_port=port % 500, instance=port) for port in range(32768)],
            )
            for group in range(1, 21)
        ]
        written = [p4r.PacketReplicationEngineEntry(multicast_group_entry=group) for group in groups]
        for one in written:
            controller.insert(one)
        assert sum(one.ByteSize() for one in written) > CLIENT_BYTES
        wanted = p4r.PacketReplicationEngineEntry(multicast_group_entry=p4r.MulticastGroupEntry())
        assert controller.read(wanted) == written
        controller.close()


def test_a_list_of_large_digests_is_several() -> None:
    """Each of them is acknowledged by its own number."""
    info = p4i.P4Info()
    info.CopyFrom(load_p4info(P4INFO))
    sent: list[p4r.DigestList] = []

    def deliver(message: p4r.StreamMessageResponse) -> bool:
        sent.append(message.digest)
        return True

    lists = DigestLists(info, deliver)
    large = p4d.P4Data(bitstring=bytes(MESSAGE_BYTES // 2))
    lists._value = lambda spec, values: large  # type: ignore[method-assign]
    digest = info.digests[0].preamble
    config = p4r.DigestEntry.Config(max_list_size=5, max_timeout_ns=60 * 10**9, ack_timeout_ns=60 * 10**9)
    lists.insert(p4r.DigestEntry(digest_id=digest.id, config=config))
    for number in range(5):
        lists.add(digest.name, (number, 0, 0))
    assert sum(len(one.data) for one in sent) == 5 and len(sent) > 1
    assert len({one.list_id for one in sent}) == len(sent)
    assert all(one.ByteSize() < CLIENT_BYTES for one in sent)
    for one in sent:
        lists.acknowledge(p4r.DigestListAck(digest_id=one.digest_id, list_id=one.list_id))
    before = len(sent)
    for number in range(5):
        lists.add(digest.name, (number, 0, 0))
    assert len(sent) > before, "they are all acknowledged, so they come again"
