"""A packet's trace as BMv2's protobuf messages ``p4.bm.PacketTrace``, one for each copy that left or was dropped.

Names and field numbers are those of behavioral-model's proto/packet_trace.proto (BMv2 1.15.5, Apache License 2.0). It
contains only pipeline stages and outcomes, no tables, actions or registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import Message

from serene.embedded.trace.steps import Step

PACKAGE = "p4.bm"
STAGE_KINDS = ("STAGE_KIND_UNSPECIFIED", "PARSER", "CONTROL", "DEPARSER")
DIRECTIONS = ("DIRECTION_UNSPECIFIED", "ENTER", "EXIT")
# The fields of each message, numbered from 1: name and type. "*" means repeated, "?" a member of the message's only
# oneof.
MESSAGES: Mapping[str, Sequence[tuple[str, str]]] = {
    "PacketTrace": [("input", "InputPacket"), ("root", "TraceTree")],
    "InputPacket": [("packet_id", "uint64"), ("ingress_port", "uint32")],
    "TraceTree": [("events", "*TraceEvent"), ("transmit", "?Transmit"), ("drop", "?Drop")],
    "TraceEvent": [("pipeline_stage", "?PipelineStageEvent")],
    "PipelineStageEvent": [
        ("stage_name", "string"),
        ("stage_kind", "PipelineStageEvent.StageKind"),
        ("direction", "PipelineStageEvent.Direction"),
    ],
    "Transmit": [("egress_port", "uint32"), ("packet_size", "uint32")],
    "Drop": [],
}
ONEOFS = {"TraceTree": "outcome", "TraceEvent": "event"}
ENUMS = {"PipelineStageEvent": {"StageKind": STAGE_KINDS, "Direction": DIRECTIONS}}
Stage = tuple[str, str]  # its name and kind
PARSER, DEPARSER = ("parser", "PARSER"), ("deparser", "DEPARSER")


def _pool() -> descriptor_pool.DescriptorPool:
    """A separate descriptor pool, because a program may have BMv2's file in the default one."""
    proto = descriptor_pb2.FieldDescriptorProto
    scalars = {"uint32": proto.TYPE_UINT32, "uint64": proto.TYPE_UINT64, "string": proto.TYPE_STRING}
    file = descriptor_pb2.FileDescriptorProto(name="packet_trace.proto", package=PACKAGE, syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for enum, values in ENUMS.get(name, {}).items():
            described = message.enum_type.add(name=enum)
            for number, value in enumerate(values):
                described.value.add(name=value, number=number)
        if name in ONEOFS:
            message.oneof_decl.add(name=ONEOFS[name])
        for number, (field, kind) in enumerate(fields, 1):
            added = message.field.add(name=field, number=number, label=proto.LABEL_OPTIONAL)
            if kind.startswith("*"):
                added.label = proto.LABEL_REPEATED
            if kind.startswith("?"):
                added.oneof_index = 0
            kind = kind.lstrip("*?")
            if kind in scalars:
                added.type = scalars[kind]
            else:
                added.type = proto.TYPE_ENUM if "." in kind else proto.TYPE_MESSAGE
                added.type_name = f".{PACKAGE}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


PacketTrace = message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{PACKAGE}.PacketTrace"))


def messages(packet: Step, number: int) -> Iterator[Message]:
    """The messages of a packet (a step of kind "packet"). number: the packet's number."""
    for stages, outcome in _copies(packet, ()):
        message = PacketTrace()
        message.input.packet_id = number
        message.input.ingress_port = int(str(packet.values["port"]))
        root = message.root
        for name, kind in stages:
            for direction in ("ENTER", "EXIT"):
                stage = root.events.add().pipeline_stage
                stage.stage_name = name
                stage.stage_kind, stage.direction = STAGE_KINDS.index(kind), DIRECTIONS.index(direction)
        if outcome.kind == "output":
            root.transmit.egress_port = int(str(outcome.values["port"]))
            root.transmit.packet_size = int(str(outcome.values["length"]))
        else:
            root.drop.SetInParent()
        yield message


def lines(packet: Step, number: int) -> Iterator[str]:
    """The messages in protobuf's text format, one line each."""
    for message in messages(packet, number):
        yield text_format.MessageToString(message, as_one_line=True)


def _copies(step: Step, before: tuple[Stage, ...]) -> Iterator[tuple[tuple[Stage, ...], Step]]:
    """The stages that each copy passed, and its output or drop."""
    parsed: tuple[Stage, ...] = (PARSER,) if any(inner.kind == "parser" for inner in step.steps) else ()
    if step.kind in ("ingress", "egress"):
        before, parsed = (*before, *parsed, (step.kind, "CONTROL")), ()
    emitted = any(inner.kind == "emit" for inner in step.steps)
    for inner in step.steps:
        deparsed: tuple[Stage, ...] = ()
        if inner.kind == "output" or (inner.kind == "ingress" and step.kind == "egress" and emitted):  # recirculated
            deparsed = (DEPARSER,)
        if inner.kind in ("drop", "output"):
            yield (*before, *deparsed), inner
        else:
            yield from _copies(inner, (*before, *parsed, *deparsed))
