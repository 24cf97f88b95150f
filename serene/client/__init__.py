"""A worker's side of Serene: ``Client`` over a ``Transport``, and the protocol itself without I/O."""

from serene.client.allreduce.collective import Disagreement
from serene.client.allreduce.pool import Pool, PoolBroken
from serene.client.protocol.protocol import Counts, Membership, PlaceTaken, Protocol, Read
from serene.client.session.client import Client
from serene.client.session.requests import BadWelcome, NoAnswer, Refused, SessionLost
from serene.client.session.session import Session
from serene.client.session.updates import CaughtUp, Update
from serene.client.transport.shm import ShmTransport
from serene.client.transport.transport import FrameTransport, Transport, TransportError, UdpTransport

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
