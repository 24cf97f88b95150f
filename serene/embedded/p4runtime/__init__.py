"""A P4Runtime server (specification 1.4) for the embedded switch, as simple_switch_grpc is for BMv2."""

from serene.embedded.p4runtime.device import Device
from serene.embedded.p4runtime.ports import InterfacePort, Port, ShmPort, UdpPort
from serene.embedded.p4runtime.service import P4RuntimeServer, ServerError

__all__ = ["Device", "InterfacePort", "P4RuntimeServer", "Port", "ServerError", "ShmPort", "UdpPort"]
