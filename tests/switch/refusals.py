"""Calls that the switch refuses."""

from __future__ import annotations

from collections.abc import Callable

import grpc
import pytest


def refused(call: Callable[[], object]) -> grpc.RpcError:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value
