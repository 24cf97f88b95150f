"""What suites import that PyPI's p4runtime does not have: ``p4.tmp.p4config_pb2``, of p4lang/PI (Apache License 2.0).
Python imports this module by itself where its folder is on the PYTHONPATH (ptf_runs.py)."""

import sys
import types

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELD = descriptor_pb2.FieldDescriptorProto
_file = descriptor_pb2.FileDescriptorProto(name="p4/tmp/p4config.proto", package="p4.tmp", syntax="proto3")
_config = _file.message_type.add(name="P4DeviceConfig")
for _name, _number, _type in (("reassign", 1, _FIELD.TYPE_BOOL), ("device_data", 3, _FIELD.TYPE_BYTES)):
    _config.field.add(name=_name, number=_number, type=_type, label=_FIELD.LABEL_OPTIONAL)
_pool = descriptor_pool.DescriptorPool()
_pool.Add(_file)
_module = types.ModuleType("p4.tmp.p4config_pb2")
_described = _pool.FindMessageTypeByName("p4.tmp.P4DeviceConfig")
if hasattr(message_factory, "GetMessageClass"):
    _module.P4DeviceConfig = message_factory.GetMessageClass(_described)  # type: ignore[attr-defined]
else:  # protobuf before 4.22
    _module.P4DeviceConfig = message_factory.MessageFactory(_pool).GetPrototype(_described)  # type: ignore[attr-defined]
_package = types.ModuleType("p4.tmp")
_package.p4config_pb2 = _module  # type: ignore[attr-defined]
sys.modules |= {"p4.tmp": _package, "p4.tmp.p4config_pb2": _module}
