"""A worker's side of Serene: ``Client`` over a ``Transport``, and the protocol itself without either."""

from serene.client.client import Client
from serene.client.collective import Disagreement
from serene.client.pool import Pool, PoolBroken
from serene.client.protocol import Counts, Membership, PlaceTaken, Protocol, Read
from serene.client.requests import BadWelcome, NoAnswer, Refused, SessionLost
from serene.client.session import Session
from serene.client.shm import ShmTransport
from serene.client.transport import FrameTransport, Transport, TransportError, UdpTransport
from serene.client.updates import CaughtUp, Update

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
    "ShmTransport",
    "Transport",
    "TransportError",
    "UdpTransport",
    "Update",
]
