"""Mutated P4Runtime messages to a switch in a process of its own: it answers each with a status and keeps running.

Valid messages are changed in their fields, or in their bytes, and sent by every call and on the stream. A finding is a
call without an answer in time, an internal error that the switch reports, or a switch that has ended.
"""

from __future__ import annotations

import contextlib
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import grpc
from finsy.proto import p4r
from google.protobuf.message import Message

from tests.embedded.p4rt_controller import as_entity, clone_session, multicast_group, update
from tests.embedded.p4rt_probe import Probe, Probing, packet_metadata
from tests.embedded.packets import mutated
from tests.embedded.running import Running

ANSWER_S = 60.0
CHECK_EVERY = 200
NUMBERS = (
    0, 1, 2, 3, 7, 100, 255, 256, 2**15, 2**16, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1, -1, -(2**31), -(2**63),
)  # fmt: skip
BYTES = (b"", b"\0", b"\1", b"\xff", b"\0" * 9, b"\xff" * 9, b"\xff" * 70, b"\1" * 5000)
TEXTS = ("", "x", "*/ int x; /*", "\0", "ü" * 300, "x" * 5000)
METHODS = ("Write", "Read", "SetForwardingPipelineConfig", "GetForwardingPipelineConfig", "Capabilities")


def seeds(c: Probing) -> list[tuple[str, Message]]:
    """Valid (method, message) pairs to mutate; for a stream, one message of it."""
    entry = c.scoped(1, 1)
    entities = [
        entry,
        c.lpm(0x0A000000, 8),
        c.entry("by_ternary", {"b": (0x100, 0xFF00), "c": (1, 1)}, "found_ternary", 2, priority=3),
        c.entry("by_range", {"c": (5, 900), "a": 7}, "found_range", 3, priority=4),
        c.entry("by_optional", {"a": 7}, "found_optional", 4, priority=5),
        c.entry("by_wide", {"wide": 1 << 100}, "found_wide", 6),
        c.default("by_exact"),
        multicast_group(1, (1, 1)),
        clone_session(1, (2, 1)),
        c.counter("seen"),
        c.meter(),
        c.register(),
        c.digest(),
        c.direct_counter(entry),
        p4r.DirectMeterEntry(table_entry=entry),
        p4r.ActionProfileMember(action_profile_id=1, member_id=1),
        p4r.ValueSetEntry(value_set_id=1),
        p4r.ExternEntry(extern_type_id=1, extern_id=1),
    ]
    given: list[tuple[str, Message]] = []
    whom: Any = {"device_id": c.device_id, "election_id": c.election}
    for entity in entities:
        for kind in ("INSERT", "MODIFY", "DELETE"):
            given.append(("Write", p4r.WriteRequest(**whom, updates=[update(kind, entity)])))
        given.append(("Read", p4r.ReadRequest(device_id=c.device_id, entities=[as_entity(entity)])))
    for action in p4r.SetForwardingPipelineConfigRequest.Action.values()[1:]:  # 0 is no action
        config = p4r.SetForwardingPipelineConfigRequest(**whom, action=action)
        if action != p4r.SetForwardingPipelineConfigRequest.COMMIT:
            config.config.p4info.CopyFrom(c.p4info)
            config.config.p4_device_config = c.program
        given.append(("SetForwardingPipelineConfig", config))
    hello = p4r.MasterArbitrationUpdate(device_id=c.device_id, election_id=p4r.Uint128(low=1))
    packet = p4r.PacketOut(payload=Probe(a=1).frame(), metadata=packet_metadata(port=255, pad=0, mark=0))
    return [
        *given,
        ("GetForwardingPipelineConfig", p4r.GetForwardingPipelineConfigRequest(device_id=c.device_id)),
        ("Capabilities", p4r.CapabilitiesRequest()),
        ("Stream", p4r.StreamMessageRequest(arbitration=hello)),
        ("Stream", p4r.StreamMessageRequest(packet=packet)),
        ("Stream", p4r.StreamMessageRequest(digest_ack=p4r.DigestListAck(digest_id=c.digest().digest_id))),
    ]


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


def fuzz(count: int, seed: int) -> Counter[str]:
    """Sends ``count`` messages, and counts the status codes of the answers."""
    counts = Counter[str]()
    with (
        tempfile.TemporaryDirectory() as folder,
        Running(Path(folder), "--no-p4", "-L", "off") as switch,
        switch.controller() as controller,
        grpc.insecure_channel(switch.address) as channel,
    ):
        controller.election_id = (1 << 128) - 1  # no election id is higher, so it stays primary
        controller.primary()
        given = seeds(controller)
        for number in range(count):
            rng = random.Random(f"p4runtime {seed} {number}")
            method, original = rng.choice(given)
            message = type(original)()
            message.CopyFrom(original)
            mutate(rng, message)
            data = message.SerializeToString()
            if rng.random() < 0.2:
                data = mutated(rng, data, len(data) + 100)
            code = send(channel, method, data)
            counts["messages"] += 1
            counts[code] += 1
            assert switch.process.poll() is None, f"message {number} of seed {seed} ended the switch"
            if number % CHECK_EVERY == CHECK_EVERY - 1:
                check(controller)
        check(controller)
        assert switch.ended() == []
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


def check(controller: Probing) -> None:
    """Checks that the switch still takes programs and entries."""
    controller.push()
    controller.insert(controller.scoped(200, 1))
    assert controller.read(controller.scoped(200)) == [controller.scoped(200, 1)]
