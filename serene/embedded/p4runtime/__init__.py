"""P4Runtime (specification 1.4) in front of the embedded switch, as simple_switch_grpc has it in front of BMv2."""

from serene.embedded.p4runtime.device import Device
from serene.embedded.p4runtime.ports import InterfacePort, Port, ShmPort, UdpPort
from serene.embedded.p4runtime.service import P4RuntimeServer, ServerError

__all__ = ["Device", "InterfacePort", "P4RuntimeServer", "Port", "ServerError", "ShmPort", "UdpPort"]
