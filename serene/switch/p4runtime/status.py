"""P4Runtime's errors: a canonical code and a message that names the culprit and the valid choices."""

from __future__ import annotations

from collections.abc import Sequence

import grpc
from finsy.proto import p4r, rpc_status
from google.protobuf.any_pb2 import Any

from serene.errors import SereneError

Code = grpc.StatusCode


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


def unimplemented(message: str) -> Failure:
    return Failure(Code.UNIMPLEMENTED, message)


def batch_details(results: Sequence[Failure | None]) -> bytes:
    """The Status of a Write in which some updates failed: one Error for each update, in order."""
    status = rpc_status.Status(code=number(Code.UNKNOWN), message="Write failure.")
    for result in results:
        error = p4r.Error(canonical_code=number(Code.OK))
        if result is not None:
            error = p4r.Error(canonical_code=number(result.code), message=result.message)
        packed = Any()
        packed.Pack(error)
        status.details.append(packed)
    return bytes(status.SerializeToString())
