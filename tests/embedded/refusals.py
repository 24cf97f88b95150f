"""Calls that the switch refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest

from tests.embedded.p4rt_controller import WriteFailed


def refused(code: grpc.StatusCode, call: Callable[..., object], *arguments: Any, **options: Any) -> str:
    """The message with which the switch refuses a call; the status code has to be this one."""
    with pytest.raises((grpc.RpcError, WriteFailed)) as caught:
        call(*arguments, **options)
    error: Any = caught.value
    found, message = (error.code, error.message) if isinstance(error, WriteFailed) else (error.code(), error.details())
    assert found is code, message
    return str(message)
