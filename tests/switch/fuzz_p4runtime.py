"""Mutated P4Runtime messages to a switch in a process of its own: it answers each with a status and keeps running.

Valid messages are changed in their fields, or in their bytes, and sent by every call and on the stream. A finding is a
call without an answer in time, an internal error that the switch reports, or a switch that has ended.
"""

from __future__ import annotations

import contextlib
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import grpc
from finsy.proto import p4r
from google.protobuf.message import Message

from tests.switch.p4rt_controller import Controller, WriteFailed, load_p4info
from tests.switch.p4rt_probe import CPU_PORT, JSON, P4INFO, Probe

ANSWER_S = 60.0
CHECK_EVERY = 200
NUMBERS = (
    0,
    1,
    2,
    3,
    7,
    100,
    255,
    256,
    2**15,
    2**16,
    2**31 - 1,
    2**32 - 1,
    2**63 - 1,
    2**64 - 1,
    -1,
    -(2**31),
    -(2**63),
)
BYTES = (b"", b"\0", b"\1", b"\xff", b"\0" * 9, b"\xff" * 9, b"\xff" * 70, b"\1" * 5000)
TEXTS = ("", "x", "*/ int x; /*", "\0", "ü" * 300, "x" * 5000)
METHODS = ("Write", "Read", "SetForwardingPipelineConfig", "GetForwardingPipelineConfig", "Capabilities")


@contextlib.contextmanager
def switch() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Runs a serene-switch without a program; yields its process and address."""
    command = [sys.executable, "-m", "serene.switch.cli", "--no-p4", "-L", "off", "--"]
    command += ["--grpc-server-addr", "127.0.0.1:0", "--cpu-port", str(CPU_PORT)]
    with tempfile.TemporaryFile("w+") as log, subprocess.Popen(command, stderr=log, text=True) as process:
        try:
            found = None
            deadline = time.monotonic() + ANSWER_S
            while not found and process.poll() is None and time.monotonic() < deadline:
                log.seek(0)
                found = re.search(r"P4Runtime on (\S+),", log.read())
                time.sleep(0.02)
            assert found, "the switch does not start"
            yield process, found.group(1)
            process.terminate()
            assert process.wait(ANSWER_S) == 0, "the switch does not end as it should"
        finally:
            process.kill()


def seeds(controller: Controller) -> list[tuple[str, Message]]:
    """Valid (method, message) pairs to mutate; for a stream, one message of it."""
    entry = controller.entry("by_scoped", {"a": 1}, "found_scoped", 1)
    group = p4r.PacketReplicationEngineEntry()
    group.multicast_group_entry.multicast_group_id = 1
    group.multicast_group_entry.replicas.add(egress_port=1, instance=1)
    session = p4r.PacketReplicationEngineEntry()
    session.clone_session_entry.session_id = 1
    session.clone_session_entry.replicas.add(egress_port=2, instance=1)
    others = [
        controller.entry("by_lpm", {"address": (0x0A000000, 8)}, "found_lpm", 1),
        controller.entry("by_ternary", {"b": (0x100, 0xFF00), "c": (1, 1)}, "found_ternary", 2, priority=3),
        controller.entry("by_range", {"c": (5, 900), "a": 7}, "found_range", 3, priority=4),
        controller.entry("by_optional", {"a": 7}, "found_optional", 4, priority=5),
        controller.entry("by_wide", {"wide": 1 << 100}, "found_wide", 6),
    ]
    entities = [
        p4r.Entity(table_entry=entry),
        *(p4r.Entity(table_entry=other) for other in others),
        p4r.Entity(table_entry=controller.default("by_exact")),
        p4r.Entity(packet_replication_engine_entry=group),
        p4r.Entity(packet_replication_engine_entry=session),
        p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=controller.id("counters", "seen"))),
        *(p4r.Entity(meter_entry=p4r.MeterEntry(meter_id=item.preamble.id)) for item in controller.p4info.meters),
        *(p4r.Entity(register_entry=p4r.RegisterEntry(register_id=i.preamble.id)) for i in controller.p4info.registers),
        *(p4r.Entity(digest_entry=p4r.DigestEntry(digest_id=i.preamble.id)) for i in controller.p4info.digests),
        p4r.Entity(direct_counter_entry=p4r.DirectCounterEntry(table_entry=entry)),
        p4r.Entity(direct_meter_entry=p4r.DirectMeterEntry(table_entry=entry)),
        p4r.Entity(action_profile_member=p4r.ActionProfileMember(action_profile_id=1, member_id=1)),
        p4r.Entity(value_set_entry=p4r.ValueSetEntry(value_set_id=1)),
        p4r.Entity(extern_entry=p4r.ExternEntry(extern_type_id=1, extern_id=1)),
    ]
    given: list[tuple[str, Message]] = []
    for entity in entities:
        for kind in (p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE):
            request = p4r.WriteRequest(device_id=controller.device_id, election_id=controller.election)
            request.updates.add(type=kind, entity=entity)
            given.append(("Write", request))
        given.append(("Read", p4r.ReadRequest(device_id=controller.device_id, entities=[entity])))
    for action in p4r.SetForwardingPipelineConfigRequest.Action.values()[1:]:  # 0 is no action
        config = p4r.SetForwardingPipelineConfigRequest(
            device_id=controller.device_id, election_id=controller.election, action=action
        )
        if action != 4:
            config.config.p4info.CopyFrom(controller.p4info)
            config.config.p4_device_config = JSON.read_bytes()
        given.append(("SetForwardingPipelineConfig", config))
    given.append(
        ("GetForwardingPipelineConfig", p4r.GetForwardingPipelineConfigRequest(device_id=controller.device_id))
    )
    given.append(("Capabilities", p4r.CapabilitiesRequest()))
    hello = p4r.StreamMessageRequest()
    hello.arbitration.device_id = controller.device_id
    hello.arbitration.election_id.CopyFrom(p4r.Uint128(low=1))
    packet = p4r.StreamMessageRequest(packet=p4r.PacketOut(payload=Probe(a=1).frame()))
    for id_, value in ((1, b"\xff"), (2, b"\0"), (3, b"\0")):
        packet.packet.metadata.add(metadata_id=id_, value=value)
    ack = p4r.StreamMessageRequest(digest_ack=p4r.DigestListAck(digest_id=controller.p4info.digests[0].preamble.id))
    return [*given, ("Stream", hello), ("Stream", packet), ("Stream", ack)]


def _repeated(descriptor: Any) -> bool:
    """Whether a field is repeated. Newer versions of protobuf deprecate ``label``, and older ones have nothing else."""
    if hasattr(descriptor, "is_repeated"):
        return bool(descriptor.is_repeated)
    return bool(descriptor.label == descriptor.LABEL_REPEATED)


def mutate(rng: random.Random, message: Message) -> None:
    """Changes one to four fields, somewhere in a message."""
    for _ in range(rng.randint(1, 4)):
        inner: Any = message
        while True:
            descriptor = rng.choice(inner.DESCRIPTOR.fields)
            present = [field for field, _ in inner.ListFields()]
            if present and rng.random() < 0.7:
                descriptor = rng.choice(present)
            name, several = descriptor.name, _repeated(descriptor)
            value = getattr(inner, name)
            if descriptor.type != descriptor.TYPE_MESSAGE or descriptor.message_type.GetOptions().map_entry:
                break
            if rng.random() < 0.1:
                inner.ClearField(name)
                break
            if several:
                if rng.random() < 0.2 and len(value):
                    value.add().CopyFrom(rng.choice(value))
                    break
                value = rng.choice(value) if len(value) else value.add()
            elif rng.random() < 0.5:
                value.SetInParent()
            inner = value
            if not inner.DESCRIPTOR.fields:
                break
        if descriptor.type == descriptor.TYPE_MESSAGE:
            continue
        if rng.random() < 0.1:
            inner.ClearField(name)
            continue
        choices: tuple[Any, ...] = {
            descriptor.CPPTYPE_STRING: BYTES if descriptor.type == descriptor.TYPE_BYTES else TEXTS,
            descriptor.CPPTYPE_BOOL: (True, False),
            descriptor.CPPTYPE_DOUBLE: (0.0, -1.0, float("nan"), float("inf")),
            descriptor.CPPTYPE_FLOAT: (0.0, -1.0, float("nan"), float("inf")),
        }.get(descriptor.cpp_type, NUMBERS)
        with contextlib.suppress(ValueError, TypeError):  # the value is out of the field's range
            if several:
                getattr(inner, name).append(rng.choice(choices))
            else:
                setattr(inner, name, rng.choice(choices))


def mutated_bytes(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        if not changed or rng.random() < 0.2:
            changed += rng.randbytes(rng.randint(1, 10))
        elif rng.random() < 0.3:
            del changed[rng.randrange(len(changed)) :]
        else:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def fuzz(count: int, seed: int) -> Counter[str]:
    """Sends ``count`` messages, and counts the status codes of the answers."""
    counts = Counter[str]()
    with switch() as (process, address), grpc.insecure_channel(address) as channel:
        controller = Controller(address, 0, load_p4info(P4INFO))
        controller.election_id = (1 << 128) - 1  # no election id is higher, so it stays primary
        controller.become_primary()
        controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
        given = seeds(controller)
        for number in range(count):
            rng = random.Random(f"p4runtime {seed} {number}")
            method, original = rng.choice(given)
            message = type(original)()
            message.CopyFrom(original)
            mutate(rng, message)
            data = message.SerializeToString()
            if rng.random() < 0.2:
                data = mutated_bytes(rng, data)
            code = send(channel, method, data)
            counts["messages"] += 1
            counts[code] += 1
            assert process.poll() is None, f"message {number} of seed {seed} ended the switch"
            if number % CHECK_EVERY == CHECK_EVERY - 1:
                check(controller)
        check(controller)
        controller.close()
    return counts


def send(channel: grpc.Channel, method: str, data: bytes) -> str:
    path = f"/p4.v1.P4Runtime/{method}"
    try:
        if method == "Stream":
            answers = channel.stream_stream("/p4.v1.P4Runtime/StreamChannel")(iter([data]), timeout=ANSWER_S)
            for _ in answers:
                pass
        elif method == "Read":
            for _ in channel.unary_stream(path)(data, timeout=ANSWER_S):
                pass
        else:
            channel.unary_unary(path)(data, timeout=ANSWER_S)
    except grpc.RpcError as error:
        code, text = error.code(), str(error.details())
        assert code is not grpc.StatusCode.DEADLINE_EXCEEDED, f"{method}: no answer"
        assert code is not grpc.StatusCode.UNAVAILABLE, f"{method}: {text}"
        assert "defect" not in text and "Exception" not in text.replace("Exception deserializing", ""), text
        assert len(text) <= 1100
        return str(code.name)
    return "OK"


def check(controller: Controller) -> None:
    """Checks that the switch still forwards packets."""
    controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
    entry = controller.entry("by_scoped", {"a": 200}, "found_scoped", 1)
    with contextlib.suppress(WriteFailed):
        controller.delete(entry)
    controller.insert(entry)
    assert controller.read(controller.key("by_scoped", {"a": 200})) == [entry]
