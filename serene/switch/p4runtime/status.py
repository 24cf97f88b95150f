"""P4Runtime's errors: a canonical code and a message that names the culprit and the valid choices."""

from __future__ import annotations

from collections.abc import Sequence

import grpc
from finsy.proto import p4r, rpc_status
from google.protobuf.any_pb2 import Any

from serene.errors import SereneError

Code = grpc.StatusCode

DETAILS_BYTES = 6000  # gRPC clients take 8 KiB of metadata unless told otherwise, and lose the whole status above it


class Failure(SereneError):
    """What a P4Runtime call answers instead of success."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def number(code: grpc.StatusCode) -> int:
    """google.rpc's number of a code."""
    return int(code.value[0])


def invalid(message: str) -> Failure:
    return Failure(Code.INVALID_ARGUMENT, message)


def not_found(message: str) -> Failure:
    return Failure(Code.NOT_FOUND, message)


def denied(message: str) -> Failure:
    return Failure(Code.PERMISSION_DENIED, message)


def unimplemented(message: str) -> Failure:
    return Failure(Code.UNIMPLEMENTED, message)


def batch_status(results: Sequence[Failure | None]) -> tuple[str, bytes]:
    """Message and serialised google.rpc.Status of a Write in which updates failed: one Error for each, in order."""
    failures = [failure for failure in results if failure]
    message = failures[0].message
    if len(failures) > 1:
        message = f"{len(failures)} of {len(results)} updates failed; the first: {message}"
    data = b""
    for longest in (None, 120, 30, 0):  # the codes matter most
        status = rpc_status.Status(code=number(Code.UNKNOWN), message=message)
        for result in results:
            error = p4r.Error(canonical_code=number(Code.OK))
            if result is not None:
                error = p4r.Error(canonical_code=number(result.code), message=result.message[:longest])
            packed = Any()
            packed.Pack(error)
            status.details.append(packed)
        data = bytes(status.SerializeToString())
        if len(data) <= DETAILS_BYTES:
            break
    return message, data
