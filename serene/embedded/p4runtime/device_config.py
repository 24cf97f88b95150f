"""The two forms of a device config: BMv2's JSON, and p4.tmp.P4DeviceConfig, which p4lang's tools still send."""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory


def program_json(device_config: bytes) -> bytes:
    """The program in a device config. JSON is never parsed as a P4DeviceConfig, because "{" would mean field 15."""
    if device_config.lstrip()[:1] == b"{":
        return device_config
    wrapped = _p4_device_config()()
    try:
        wrapped.ParseFromString(device_config)
    except message.DecodeError:
        return device_config  # the JSON parser will report the error
    return wrapped.device_data or device_config


@cache
def _p4_device_config() -> Any:
    """The message type without its field ``extras``, which no switch reads."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="serene/p4_device_config.proto", package="serene.p4.tmp", syntax="proto3"
    )
    item = file.message_type.add(name="P4DeviceConfig")
    item.field.add(name="reassign", number=1, type=kinds.TYPE_BOOL, label=kinds.LABEL_OPTIONAL)
    item.field.add(name="device_data", number=3, type=kinds.TYPE_BYTES, label=kinds.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("serene.p4.tmp.P4DeviceConfig"))
