"""P4Runtime's errors: a canonical code, and a message with the cause and the valid choices."""

from __future__ import annotations

import errno
from collections.abc import Sequence

import grpc
from finsy.proto import p4r, rpc_status
from google.protobuf.any_pb2 import Any

from serene.embedded.program.errors import NoMemory
from serene.errors import SereneError
from serene.native import CompileFailed, CompilerMissing

Code = grpc.StatusCode

# By default gRPC clients accept 8 KiB of metadata, and lose the whole status above that. It contains the message twice,
# once percent-encoded, and details in base 64.
MESSAGE_CHARACTERS = 1000
DETAILS_BYTES = 4500
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM)


class Failure(SereneError):
    """A P4Runtime call fails with this code and message."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        self.code = code
        self.message = shortened(message)
        super().__init__(self.message)


def shortened(message: str) -> str:
    """Shortens a message to fit a status. The result is printable ASCII of bounded length, for any input that it
    repeats."""
    text = message[: 2 * MESSAGE_CHARACTERS].encode("ascii", "backslashreplace").decode()
    text = "".join(character if character.isprintable() or character == "\n" else "?" for character in text)
    if len(text) <= MESSAGE_CHARACTERS and len(message) <= 2 * MESSAGE_CHARACTERS:
        return text
    half = MESSAGE_CHARACTERS // 2 - 10  # also keeps the end, which often names what was expected
    end = message[-half:].encode("ascii", "backslashreplace").decode()[-half:]
    return f"{text[:half]} [...] {''.join(c if c.isprintable() else '?' for c in end)}"


def number(code: grpc.StatusCode) -> int:
    """A code's number in google.rpc."""
    return int(code.value[0])


def invalid(message: str) -> Failure:
    return Failure(Code.INVALID_ARGUMENT, message)


def refused(error: SereneError) -> Failure:
    """The Failure for a program that cannot run. Its code depends on the cause: the program, or this machine's
    compiler."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, NoMemory):
        return Failure(Code.RESOURCE_EXHAUSTED, str(error))
    if not isinstance(error, (CompileFailed, CompilerMissing)):
        return invalid(str(error))
    no_room = isinstance(error.__cause__, OSError) and error.__cause__.errno in NO_ROOM
    return Failure(Code.RESOURCE_EXHAUSTED if no_room else Code.INTERNAL, str(error))


def not_found(message: str) -> Failure:
    return Failure(Code.NOT_FOUND, message)


def denied(message: str) -> Failure:
    return Failure(Code.PERMISSION_DENIED, message)


def unimplemented(message: str) -> Failure:
    return Failure(Code.UNIMPLEMENTED, message)


def batch_status(results: Sequence[Failure | None]) -> tuple[str, bytes]:
    """Message and serialised google.rpc.Status of a Write with failed updates: one Error for each update, in order.

    The Errors are left out if there are too many updates even for their codes.
    """
    failures = [failure for failure in results if failure]
    message = failures[0].message
    if len(failures) > 1:
        message = shortened(f"{len(failures)} of {len(results)} updates failed; the first: {message}")
    for longest in (None, 120, 30, 0):  # messages are shortened first, because the codes are more important
        status = rpc_status.Status(code=number(Code.UNKNOWN), message=message)
        for result in results[: DETAILS_BYTES // 20]:  # no Error is smaller
            error = p4r.Error(canonical_code=number(Code.OK))
            if result is not None:
                error = p4r.Error(canonical_code=number(result.code), message=result.message[:longest])
            packed = Any()
            packed.Pack(error)
            status.details.append(packed)
        data = bytes(status.SerializeToString())
        if len(data) <= DETAILS_BYTES and len(status.details) == len(results):
            return message, data
    return message, bytes(rpc_status.Status(code=number(Code.UNKNOWN), message=message).SerializeToString())
