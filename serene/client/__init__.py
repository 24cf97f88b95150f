"""A worker's side of Serene: ``Client`` over a ``Transport``, and the protocol itself without either."""

from serene.client.client import BadWelcome, CaughtUp, Client, NoAnswer, Refused, SessionLost, Update
from serene.client.protocol import Counts, Membership, PlaceTaken, Protocol, Read
from serene.client.session import Session
from serene.client.transport import FrameTransport, Transport, TransportError, UdpTransport

__all__ = [
    "BadWelcome",
    "CaughtUp",
    "Client",
    "Counts",
    "FrameTransport",
    "Membership",
    "NoAnswer",
    "PlaceTaken",
    "Protocol",
    "Read",
    "Refused",
    "Session",
    "SessionLost",
    "Transport",
    "TransportError",
    "UdpTransport",
    "Update",
]
