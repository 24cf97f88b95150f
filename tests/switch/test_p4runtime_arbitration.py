"""Who may write: election ids, primaries and backups, on the embedded switch and on simple_switch_grpc."""

from __future__ import annotations

import grpc
import pytest
from finsy.proto import p4r
from google.protobuf import any_pb2

from serene.switch.p4runtime.arbitration import MAX_ROLES
from tests.switch.conftest import Target, embedded_target
from tests.switch.p4rt_controller import Code, Controller, WriteFailed, new_election_id, same, until
from tests.switch.p4rt_controller import update as change
from tests.switch.p4rt_probe import JSON, Probe


def election(update: p4r.MasterArbitrationUpdate) -> int:
    return update.election_id.high << 64 | update.election_id.low


@pytest.fixture
def second(target: Target, controller: Controller):  # type: ignore[no-untyped-def]
    """A controller with a higher election id than ``controller``."""
    second = target.controller()
    assert second.election_id > controller.election_id
    yield second
    second.close()


def test_the_first_controller_is_primary(target: Target, controller: Controller) -> None:
    stream = controller.stream()
    stream.introduce(controller.election_id)
    update = stream.receive("arbitration")
    assert update.status.code == 0
    assert (update.device_id, election(update)) == (target.device_id, controller.election_id)


def test_a_controller_that_comes_back_before_its_old_stream_has_ended(embedded: Target) -> None:
    """Its old stream is half-closed just after its new one has said the same election id."""
    controller = embedded.controller()
    old, new = controller.stream(), controller.stream()
    old.introduce(controller.election_id)
    assert old.status() is Code.OK
    new.introduce(controller.election_id)
    old.half_close()
    assert new.status() is Code.OK
    controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
    controller.close()


def test_election_ids_have_128_bits() -> None:
    with embedded_target() as fresh:
        low, high = fresh.controller(), fresh.controller()
        low.election_id, high.election_id = (1 << 64) - 1, 1 << 64
        backup, primary = low.become_primary(), high.become_primary()
        update = backup.receive("arbitration")
        assert (update.status.code, election(update)) == (Code.ALREADY_EXISTS.value[0], 1 << 64)
        with pytest.raises(WriteFailed) as failed:
            low.write()
        assert failed.value.code is Code.PERMISSION_DENIED
        assert "18446744073709551615" in failed.value.message and "18446744073709551616" in failed.value.message
        assert primary.silent()
        low.close()
        high.close()


def test_a_lower_election_id_is_backup_and_may_not_write(controller: Controller, second: Controller) -> None:
    second.become_primary()
    second.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
    backup = controller.stream()
    backup.introduce(controller.election_id)
    update = backup.receive("arbitration")
    assert update.status.code == Code.ALREADY_EXISTS.value[0]
    assert election(update) == second.election_id

    with pytest.raises(WriteFailed) as failed:
        controller.insert(controller.entry("by_scoped", {"a": 1}, "found_scoped", 1))
    assert failed.value.code is Code.PERMISSION_DENIED
    with pytest.raises(grpc.RpcError) as refused:
        controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
    assert refused.value.code() is Code.PERMISSION_DENIED
    # A backup may read.
    assert controller.get_pipeline("P4INFO_AND_COOKIE").p4info == controller.p4info
    assert [entry.table_id for entry in controller.read(controller.default("by_exact"))]


def test_a_higher_election_id_takes_over(controller: Controller, second: Controller) -> None:
    first = controller.become_primary()
    controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
    second.become_primary()
    update = first.receive("arbitration")
    assert update.status.code == Code.ALREADY_EXISTS.value[0]
    assert election(update) == second.election_id

    entry = controller.entry("by_scoped", {"a": 1}, "found_scoped", 1)
    with pytest.raises(WriteFailed) as failed:
        controller.insert(entry)
    assert failed.value.code is Code.PERMISSION_DENIED
    second.insert(entry)
    assert second.read(second.key("by_scoped", {"a": 1})) == [entry]


def test_an_election_id_in_use_ends_the_stream(target: Target, controller: Controller) -> None:
    holder = controller.become_primary()
    twin = controller.stream()
    twin.introduce(controller.election_id)
    assert twin.end_code() is Code.INVALID_ARGUMENT
    assert twin.ended is not None
    message = twin.ended.details()
    assert "election id" in message.lower()
    assert target.name == "bmv2" or str(controller.election_id) in message
    assert holder.silent()  # and stays what it was
    controller.set_pipeline("VERIFY", JSON.read_bytes())


def test_a_backup_that_raises_its_id_becomes_primary(controller: Controller, second: Controller) -> None:
    first = controller.become_primary()
    other = second.become_primary()
    assert first.status() is Code.ALREADY_EXISTS
    controller.election_id = new_election_id()
    first.introduce(controller.election_id)
    assert first.status() is Code.OK
    assert other.status() is Code.ALREADY_EXISTS
    controller.set_pipeline("VERIFY", JSON.read_bytes())


@pytest.fixture
def fresh():  # type: ignore[no-untyped-def]
    """A switch that has seen no election id yet: BMv2 forgets them, so these tests are for ours."""
    with embedded_target() as target:
        yield target


def test_a_primary_that_leaves_is_announced_and_missed(fresh: Target) -> None:
    """BMv2 makes the next one primary; the specification says that there is none until one asks."""
    backup_controller, primary_controller = fresh.controller(), fresh.controller()
    backup = backup_controller.become_primary()
    primary = primary_controller.become_primary()
    assert backup.status() is Code.ALREADY_EXISTS
    primary.close()
    update = backup.receive("arbitration")
    assert update.status.code == Code.NOT_FOUND.value[0]
    assert election(update) == primary_controller.election_id
    with pytest.raises(WriteFailed) as failed:
        primary_controller.write()
    assert failed.value.code is Code.PERMISSION_DENIED and "no primary" in failed.value.message

    # Asking again with its own, lower id is not enough; with the highest id it is.
    backup.introduce(backup_controller.election_id)
    assert backup.status() is Code.NOT_FOUND
    backup.introduce(primary_controller.election_id)
    assert backup.status() is Code.OK
    backup_controller.close()


def test_a_primary_may_step_down(fresh: Target) -> None:
    first_controller, second_controller = fresh.controller(), fresh.controller()
    first = first_controller.become_primary()
    second = second_controller.become_primary()
    assert first.status() is Code.ALREADY_EXISTS
    second.introduce(first_controller.election_id - 1)
    assert second.status() is Code.NOT_FOUND
    assert first.status() is Code.NOT_FOUND
    for controller in (first_controller, second_controller):
        with pytest.raises(WriteFailed) as failed:
            controller.write()
        assert failed.value.code is Code.PERMISSION_DENIED
        controller.close()


def test_changing_to_an_election_id_in_use_ends_the_stream(fresh: Target) -> None:
    """simple_switch_grpc 1.15.5 crashes here."""
    first_controller, second_controller = fresh.controller(), fresh.controller()
    first = first_controller.become_primary()
    second = second_controller.become_primary()
    assert first.status() is Code.ALREADY_EXISTS
    second.introduce(first_controller.election_id)
    assert second.end_code() is Code.INVALID_ARGUMENT
    assert first.status() is Code.NOT_FOUND  # the primary has gone
    for controller in (first_controller, second_controller):
        controller.close()


def test_controllers_without_an_election_id_stay_backups(fresh: Target) -> None:
    controllers = [fresh.controller() for _ in range(2)]
    for controller in controllers:
        stream = controller.stream()
        stream.introduce(None)
        update = stream.receive("arbitration")
        assert update.status.code == Code.NOT_FOUND.value[0]
        assert not update.HasField("election_id")  # there has been no primary at all
        with pytest.raises(WriteFailed) as failed:
            controller.write(election_id=None)
        assert failed.value.code is Code.PERMISSION_DENIED
    primary = fresh.controller()
    primary.election_id = 0  # zero is an id like others, and not the same as none
    primary.become_primary()
    primary.set_pipeline("VERIFY", JSON.read_bytes())
    for controller in [*controllers, primary]:
        controller.close()


def test_the_same_id_may_come_back(fresh: Target) -> None:
    controller = fresh.controller()
    for _ in range(3):
        controller.become_primary().close()
        until(lambda: _gone(controller), "the switch sees that the stream has ended")
    controller.close()


def _gone(controller: Controller) -> bool:
    try:
        controller.write()
    except WriteFailed as failed:
        return failed.code is Code.PERMISSION_DENIED
    return False


# -- what a MasterArbitrationUpdate may not say ---------------------------------------------------------------


def test_another_device_is_not_found(fresh: Target) -> None:
    controller = fresh.controller()
    stream = controller.stream()
    stream.introduce(1, device_id=fresh.device_id + 1)
    assert stream.end_code() is Code.NOT_FOUND
    assert stream.ended is not None and f"device {fresh.device_id}" in stream.ended.details()
    controller.close()


def test_a_stream_keeps_its_device(target: Target, controller: Controller) -> None:
    stream = controller.become_primary()
    stream.introduce(controller.election_id, device_id=target.device_id + 1)
    assert stream.end_code() is Code.FAILED_PRECONDITION


def test_a_stream_keeps_its_role(fresh: Target) -> None:
    controller = fresh.controller()
    stream = controller.become_primary()
    stream.introduce(controller.election_id, role=p4r.Role(name="sdn"))
    assert stream.end_code() is Code.FAILED_PRECONDITION
    stream = controller.stream()
    stream.introduce(controller.election_id, role=p4r.Role(name="sdn"))
    assert stream.status() is Code.OK
    stream.introduce(controller.election_id)
    assert stream.end_code() is Code.FAILED_PRECONDITION
    controller.close()


def test_each_role_has_a_primary_of_its_own(fresh: Target) -> None:
    """Election ids are a role's, too; a request is of the role that it names. What happens is told to all primaries."""
    controllers = {name: fresh.controller() for name in ("", "sdn", "tap")}
    streams = {}
    for name, controller in controllers.items():
        controller.election_id = 5
        streams[name] = controller.stream()
        streams[name].introduce(5, role=p4r.Role(name=name) if name else None)
        update = streams[name].receive("arbitration")
        assert (update.status.code, update.role.name, election(update)) == (0, name, 5)
    default, sdn = controllers[""], controllers["sdn"]
    default.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
    entries = [sdn.entry("by_scoped", {"a": a}, "found_scoped", a) for a in (1, 2, 3)]
    default.write(change("INSERT", entries[0]))
    sdn.write(change("INSERT", entries[1]), role="sdn")
    assert same(sdn.read(sdn.key("by_scoped")), entries[:2])

    twin = sdn.stream()
    twin.introduce(5, role=p4r.Role(name="sdn"))
    assert twin.end_code() is Code.INVALID_ARGUMENT
    higher = sdn.stream()
    higher.introduce(6, role=p4r.Role(name="sdn"))
    assert higher.status() is Code.OK and streams["sdn"].status() is Code.ALREADY_EXISTS
    with pytest.raises(WriteFailed, match=r"is not the primary's of role 'sdn' \(6\)") as failed:
        sdn.write(change("INSERT", entries[2]), role="sdn")
    assert failed.value.code is Code.PERMISSION_DENIED
    higher.close()
    assert streams["sdn"].status() is Code.NOT_FOUND
    with pytest.raises(WriteFailed, match="no primary controller of role 'sdn'"):
        sdn.write(change("INSERT", entries[2]), role="sdn")
    default.write(change("INSERT", entries[2]))  # nothing has changed for others

    default.packet_out(streams[""], Probe(a=1).frame())
    for name in ("", "tap"):
        assert Probe.parse(streams[name].receive("packet").payload).by_scoped == 1
    sdn.packet_out(streams["sdn"], Probe(a=1).frame())
    assert streams["sdn"].receive("error").canonical_code == Code.PERMISSION_DENIED.value[0]
    for controller in controllers.values():
        controller.close()


def test_roles_by_number(fresh: Target) -> None:
    """As controllers wrote them before P4Runtime 1.4."""
    controller = fresh.controller()
    stream = controller.stream()
    stream.introduce(controller.election_id, role=p4r.Role(id=7))
    told = stream.receive("arbitration")
    assert (told.status.code, told.role.id, told.role.name) == (0, 7, "")
    with pytest.raises(WriteFailed) as failed:
        controller.write(role_id=8)
    assert failed.value.code is Code.NOT_FOUND and "'8'" in failed.value.message and "'7'" in failed.value.message
    with pytest.raises(WriteFailed) as failed:
        controller.write(role_id=7)
    assert failed.value.code is Code.FAILED_PRECONDITION  # no program yet
    controller.close()


def test_roles_that_are_refused(fresh: Target) -> None:
    controller = fresh.controller()
    config = any_pb2.Any(type_url="type.googleapis.com/stratum.P4RoleConfig")
    for role, code, words in (
        (p4r.Role(name="sdn", config=config), Code.INVALID_ARGUMENT, "role 'sdn': role configs are not supported"),
        (p4r.Role(config=config), Code.INVALID_ARGUMENT, "role configs are not supported"),
        (p4r.Role(name="x" * 257), Code.INVALID_ARGUMENT, "257 characters; at most 256"),
    ):
        stream = controller.stream()
        stream.introduce(1, role=role)
        assert stream.end_code() is code
        assert stream.ended is not None and words in stream.ended.details()
    for number in range(2 * MAX_ROLES):  # those that nothing is known of are forgotten
        name = str(number + 1)
        stream = controller.stream()
        stream.introduce(None, role=p4r.Role(name=name))
        assert stream.status() is Code.NOT_FOUND
        stream.close()
        wait_until_refused(controller, name, "there is no role")
    for number in range(MAX_ROLES):
        name = str(number + 1)
        stream = controller.stream()
        stream.introduce(1, role=p4r.Role(name=name))
        assert stream.status() is Code.OK
        stream.close()
        wait_until_refused(controller, name, "there is no primary")
    stream = controller.stream()
    stream.introduce(1, role=p4r.Role(name="one more"))
    assert stream.end_code() is Code.RESOURCE_EXHAUSTED
    assert stream.ended is not None and f"{MAX_ROLES} roles have been named" in stream.ended.details()
    controller.become_primary()
    with pytest.raises(WriteFailed) as failed:
        controller.write(role="sdn")
    assert failed.value.code is Code.NOT_FOUND
    controller.close()


def wait_until_refused(controller: Controller, role: str, words: str) -> None:
    """The switch says so when the role's stream has ended: another one can have its place."""

    def refused() -> bool:
        with pytest.raises(WriteFailed) as failed:
            controller.write(role=role)
        return words in failed.value.message

    until(refused, f"the switch says {words!r}")


def test_a_read_s_role_is_a_filter(fresh: Target) -> None:
    """Each has access to everything, even one that nobody has named."""
    controller = fresh.controller()
    controller.become_primary()
    controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
    entry = controller.entry("by_scoped", {"a": 1}, "found_scoped", 1)
    controller.insert(entry)
    wanted = [p4r.Entity(table_entry=controller.key("by_scoped"))]
    (answer,) = controller.stub.Read(p4r.ReadRequest(device_id=fresh.device_id, role="sdn", entities=wanted))
    assert [found.table_entry for found in answer.entities] == [entry]
    controller.close()


def test_a_stream_begins_with_an_introduction(fresh: Target) -> None:
    controller = fresh.controller()
    stream = controller.stream()
    stream.send(packet=p4r.PacketOut(payload=b"x"))
    assert stream.end_code() is Code.FAILED_PRECONDITION
    controller.close()


def test_writes_to_another_device_are_not_found(fresh: Target) -> None:
    controller = fresh.controller()
    controller.become_primary()
    controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
    controller.device_id += 1
    with pytest.raises(WriteFailed) as failed:
        controller.write()
    assert failed.value.code is Code.NOT_FOUND
    for call in (controller.read, controller.get_pipeline):
        with pytest.raises(grpc.RpcError) as refused:
            call()
        assert refused.value.code() is Code.NOT_FOUND
    with pytest.raises(grpc.RpcError) as refused:
        controller.stub.Capabilities(p4r.CapabilitiesRequest(device_id=controller.device_id))
    assert refused.value.code() is Code.NOT_FOUND
    controller.close()


def test_capabilities_name_the_version(controller: Controller) -> None:
    version = controller.stub.Capabilities(p4r.CapabilitiesRequest()).p4runtime_api_version
    assert version.startswith("1.")
