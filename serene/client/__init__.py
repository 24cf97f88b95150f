"""A worker's side of Serene: ``Client`` over a ``Transport``, and the protocol itself without either."""

from serene.client.client import BadWelcome, CaughtUp, Client, NoAnswer, Refused, SessionLost, Update
from serene.client.collective import Disagreement
from serene.client.pool import Pool, PoolBroken
from serene.client.protocol import Counts, Membership, PlaceTaken, Protocol, Read
from serene.client.session import Session
from serene.client.transport import FrameTransport, Transport, TransportError, UdpTransport

__all__ = [
    "BadWelcome",
    "CaughtUp",
    "Client",
    "Counts",
    "Disagreement",
    "FrameTransport",
    "Membership",
    "NoAnswer",
    "PlaceTaken",
    "Pool",
    "PoolBroken",
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
