"""Arbitration: election ids, primaries and backups, on the embedded switch and on simple_switch_grpc."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from finsy.proto import p4r
from google.protobuf import any_pb2

from serene.embedded.p4runtime.arbitration import MAX_ROLES
from tests.embedded.conftest import Target
from tests.embedded.p4rt_controller import Code, Stream, WriteFailed, new_election_id, ordered, refused, until, update
from tests.embedded.p4rt_probe import Probe, Probing

Make = Callable[[], Probing]
DENIED = Code.PERMISSION_DENIED


def arbitration_status(stream: Stream) -> tuple[Code, int]:
    """The next arbitration update: its status, and the primary's election id."""
    notice = stream.receive("arbitration")
    (code,) = (code for code in Code if code.value[0] == notice.status.code)
    return code, notice.election_id.high << 64 | notice.election_id.low


def introduced(controller: Probing, election_id: int | None, role: p4r.Role | None = None) -> Stream:
    stream = controller.stream()
    stream.introduce(election_id, role=role)
    return stream


@pytest.fixture
def second(target: Target, controller: Probing) -> Iterator[Probing]:
    """A controller with a higher election id than ``controller``."""
    with target.controller() as second:
        assert second.election_id > controller.election_id
        yield second


def test_first_controller_becomes_primary(target: Target, controller: Probing) -> None:
    notice = introduced(controller, controller.election_id).receive("arbitration")
    assert (notice.status.code, notice.device_id, notice.election_id) == (0, target.device_id, controller.election)
    assert controller.stub.Capabilities(p4r.CapabilitiesRequest()).p4runtime_api_version.startswith("1.")


def test_returning_controller_is_accepted_before_its_old_stream_ends(new: Make) -> None:
    """The old stream is half-closed just after the new one has sent the same election id."""
    controller = new()
    old, again = controller.become_primary(), controller.stream()
    again.introduce(controller.election_id)
    old.half_close()
    assert again.status() is Code.OK
    controller.push()


def test_election_ids_have_128_bits(new: Make) -> None:
    low, high = new(), new()
    low.election_id, high.election_id = (1 << 64) - 1, 1 << 64
    backup, primary = low.become_primary(), high.become_primary()
    assert arbitration_status(backup) == (Code.ALREADY_EXISTS, 1 << 64)
    message = refused(DENIED, low.write)
    assert "18446744073709551615" in message and "18446744073709551616" in message
    primary.introduce(high.election_id)
    assert primary.status() is Code.OK  # the next that it hears


def test_lower_election_id_is_backup_and_may_not_write(controller: Probing, second: Probing) -> None:
    second.primary()
    backup = introduced(controller, controller.election_id)
    assert arbitration_status(backup) == (Code.ALREADY_EXISTS, second.election_id)
    refused(DENIED, controller.insert, controller.scoped(1, 1))
    refused(DENIED, controller.push)
    # A backup may read.
    assert controller.get_pipeline("P4INFO_AND_COOKIE").p4info == controller.p4info
    assert controller.read(controller.default("by_exact"))


def test_higher_election_id_takes_over(controller: Probing, second: Probing) -> None:
    controller.primary()
    second.become_primary()
    assert arbitration_status(controller.messages) == (Code.ALREADY_EXISTS, second.election_id)
    refused(DENIED, controller.insert, controller.scoped(1, 1))
    second.insert(second.scoped(1, 1))
    assert second.read(second.scoped(1)) == [second.scoped(1, 1)]
    controller.election_id = new_election_id()  # a backup that raises its id
    controller.messages.introduce(controller.election_id)
    assert controller.messages.status() is Code.OK and second.messages.status() is Code.ALREADY_EXISTS
    controller.push(action="VERIFY")


def test_election_id_in_use_ends_the_stream(target: Target, controller: Probing, second: Probing) -> None:
    holder = controller.become_primary()
    twin = introduced(controller, controller.election_id)
    assert twin.end_code() is Code.INVALID_ARGUMENT
    assert "election id" in twin.end_words().lower()
    assert target.name == "bmv2" or str(controller.election_id) in twin.end_words()
    controller.push(action="VERIFY")
    second.become_primary()
    assert holder.status() is Code.ALREADY_EXISTS  # it has heard nothing else
    holder.introduce(controller.election_id, device_id=target.device_id + 1)  # a stream keeps its device
    assert holder.end_code() is Code.FAILED_PRECONDITION


# -- on the embedded switch: BMv2 forgets the highest election id, and makes the next controller primary --------------


def test_backup_is_notified_when_the_primary_leaves(new: Make) -> None:
    """There is no primary until a controller asks to be one."""
    first, second = new(), new()
    backup, primary = first.become_primary(), second.become_primary()
    assert backup.status() is Code.ALREADY_EXISTS
    primary.close()
    assert arbitration_status(backup) == (Code.NOT_FOUND, second.election_id)
    assert "no primary" in refused(DENIED, second.write)
    # Asking again with its own, lower id is not enough; with the highest id it is.
    for election_id, code in ((first.election_id, Code.NOT_FOUND), (second.election_id, Code.OK)):
        backup.introduce(election_id)
        assert backup.status() is code


def test_primary_may_lower_its_election_id(new: Make) -> None:
    first, second = new(), new()
    backup, primary = first.become_primary(), second.become_primary()
    assert backup.status() is Code.ALREADY_EXISTS
    primary.introduce(first.election_id - 1)
    assert backup.status() is primary.status() is Code.NOT_FOUND
    for controller in (first, second):
        refused(DENIED, controller.write)


def test_changing_to_an_election_id_in_use_ends_the_stream(new: Make) -> None:
    """simple_switch_grpc 1.15.5 crashes here."""
    first, second = new(), new()
    backup, primary = first.become_primary(), second.become_primary()
    assert backup.status() is Code.ALREADY_EXISTS
    primary.introduce(first.election_id)
    assert primary.end_code() is Code.INVALID_ARGUMENT
    assert backup.status() is Code.NOT_FOUND  # the primary has gone


def test_controllers_without_an_election_id_stay_backups(new: Make) -> None:
    for controller in (new(), new()):
        notice = introduced(controller, None).receive("arbitration")
        assert notice.status.code == Code.NOT_FOUND.value[0]
        assert not notice.HasField("election_id")  # there has been no primary at all
        refused(DENIED, controller.write, election_id=None)
    primary = new()
    primary.election_id = 0  # zero is an id like others, and not the same as none
    primary.primary()


def test_controller_may_reuse_its_election_id_after_leaving(new: Make) -> None:
    controller = new()
    for _ in range(3):
        controller.become_primary().close()
        until(lambda: "no primary" in refused_write(controller), "the switch sees that the stream has ended")


def refused_write(controller: Probing, **fields: str) -> str:
    """The message with which an empty Write is refused."""
    with pytest.raises(WriteFailed) as failed:
        controller.write(**fields)
    return str(failed.value.message)


def test_bad_introductions_are_refused(fresh: Target, new: Make) -> None:
    controller = new()
    other = controller.stream()
    other.introduce(1, device_id=fresh.device_id + 1)
    assert other.end_code() is Code.NOT_FOUND and f"device {fresh.device_id}" in other.end_words()
    first = controller.stream()
    first.send(packet=p4r.PacketOut(payload=b"x"))  # a stream begins with an introduction
    assert first.end_code() is Code.FAILED_PRECONDITION
    sdn = p4r.Role(name="sdn")
    for before, after in ((None, sdn), (sdn, None)):  # a stream keeps its role
        stream = introduced(controller, controller.election_id, before)
        assert stream.status() is Code.OK
        stream.introduce(controller.election_id, role=after)
        assert stream.end_code() is Code.FAILED_PRECONDITION


def test_request_for_another_device_is_not_found(alone: Probing) -> None:
    alone.device_id += 1
    for call in (alone.write, alone.read, alone.get_pipeline):
        refused(Code.NOT_FOUND, call)
    refused(Code.NOT_FOUND, alone.stub.Capabilities, p4r.CapabilitiesRequest(device_id=alone.device_id))


# -- roles ------------------------------------------------------------------------------------------------------------


def test_each_role_has_its_own_primary(new: Make) -> None:
    """Election ids belong to a role, and a request to the role that it names. All primaries get notices and packets."""
    controllers = {name: new() for name in ("", "sdn", "tap")}
    for name, controller in controllers.items():
        controller.election_id = 5
        controller.messages = introduced(controller, 5, p4r.Role(name=name) if name else None)
        notice = controller.messages.receive("arbitration")
        assert (notice.status.code, notice.role.name, notice.election_id.low) == (0, name, 5)
    default, sdn, tap = controllers.values()
    default.push()
    entries = [sdn.scoped(a, a) for a in (1, 2, 3)]
    default.insert(entries[0])
    sdn.write(update("INSERT", entries[1]), role="sdn")
    assert ordered(sdn.read(sdn.key("by_scoped"))) == ordered(entries[:2])

    assert introduced(sdn, 5, p4r.Role(name="sdn")).end_code() is Code.INVALID_ARGUMENT
    higher = introduced(sdn, 6, p4r.Role(name="sdn"))
    assert higher.status() is Code.OK and sdn.messages.status() is Code.ALREADY_EXISTS
    third = update("INSERT", entries[2])
    assert "is not the primary's of role 'sdn' (6)" in refused(DENIED, sdn.write, third, role="sdn")
    higher.close()
    assert sdn.messages.status() is Code.NOT_FOUND
    assert "no primary controller of role 'sdn'" in refused(DENIED, sdn.write, third, role="sdn")
    default.write(third)  # nothing has changed for others

    assert default.send(Probe(a=1)).by_scoped == tap.received().by_scoped == 1
    sdn.packet_out(Probe(a=1))
    assert sdn.messages.receive("error").canonical_code == DENIED.value[0]
    # A read's role is a filter: each has access to everything, even one that nobody has named.
    wanted = [p4r.Entity(table_entry=default.scoped(1))]
    (answer,) = default.stub.Read(p4r.ReadRequest(device_id=default.device_id, role="other", entities=wanted))
    assert [found.table_entry for found in answer.entities] == [entries[0]]


def test_roles_may_be_given_by_number(new: Make) -> None:
    """Controllers wrote them so before P4Runtime 1.4."""
    controller = new()
    notice = introduced(controller, controller.election_id, p4r.Role(id=7)).receive("arbitration")
    assert (notice.status.code, notice.role.id, notice.role.name) == (0, 7, "")
    message = refused(Code.NOT_FOUND, controller.write, role_id=8)
    assert "'8'" in message and "'7'" in message
    refused(Code.FAILED_PRECONDITION, controller.write, role_id=7)  # no program yet


def test_bad_roles_are_refused(new: Make) -> None:
    controller = new()
    config = any_pb2.Any(type_url="type.googleapis.com/stratum.P4RoleConfig")
    for role, words in (
        (p4r.Role(name="sdn", config=config), "role 'sdn': role configs are not supported"),
        (p4r.Role(config=config), "role configs are not supported"),
        (p4r.Role(name="x" * 257), "257 characters; at most 256"),
    ):
        stream = introduced(controller, 1, role)
        assert stream.end_code() is Code.INVALID_ARGUMENT and words in stream.end_words()
    # Those of which nothing is known are forgotten; of others there is a limited number.
    for election_id, status, count, words in (
        (None, Code.NOT_FOUND, 2 * MAX_ROLES, "there is no role"),
        (1, Code.OK, MAX_ROLES, "there is no primary"),
    ):
        for name in map(str, range(1, count + 1)):
            stream = introduced(controller, election_id, p4r.Role(name=name))
            assert stream.status() is status
            stream.close()
            until(lambda: words in refused_write(controller, role=name), f"the switch answers {words!r}")  # noqa: B023
    stream = introduced(controller, 1, p4r.Role(name="one more"))
    assert stream.end_code() is Code.RESOURCE_EXHAUSTED
    assert f"{MAX_ROLES} roles have been named" in stream.end_words()
    controller.become_primary()
    refused(Code.NOT_FOUND, controller.write, role="sdn")
