"""Copies between an accelerator's memory and the host's, where sums are exchanged, for all devices of
`torch.accelerator`.

Copies use pinned memory, on separate streams: one to the host, in order with the caller's stream, and one back. So they
overlap with the device's computing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor


def device_of(tensors: Iterable[Tensor]) -> torch.device | None:
    """The accelerator on which all of these tensors are; None if they are elsewhere, or on several devices."""
    devices = {tensor.device for tensor in tensors}
    if len(devices) != 1:
        return None
    device = devices.pop()
    accelerator = None if device.type == "cpu" else torch.accelerator.current_accelerator()
    return device if accelerator is not None and accelerator.type == device.type else None


class Copies:
    """Copies of one device's tensors. ``waited_s``: seconds that threads have waited for copies. If the device is the
    host's memory, copies are ordinary ones."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.waited_s = 0.0
        on_host = device.type == "cpu"
        self._to_host, self._back = (None if on_host else torch.Stream(device) for _ in range(2))

    def pinned(self, like: Tensor) -> Tensor:
        """A contiguous tensor of this shape and type in the host's pinned memory."""
        return torch.empty(like.shape, dtype=like.dtype, device="cpu", pin_memory=self._back is not None)

    def fetch(self, to: Tensor, values: Tensor) -> None:
        """Copies the device's values to the host, after the work that is queued on this thread's current stream."""
        if self._to_host is None:
            to.copy_(values)
            return
        self._to_host.wait_stream(torch.accelerator.current_stream(self.device))
        with self._to_host:
            to.copy_(values, non_blocking=True)
            values.record_stream(self._to_host)

    def fetched(self) -> torch.Event | None:
        """An event that ends when all values fetched so far have arrived."""
        return None if self._to_host is None else self._to_host.record_event()

    def wait_for(self, fetched: torch.Event | None) -> None:
        """Waits in this thread."""
        if fetched is not None:
            began = time.monotonic()
            fetched.synchronize()
            self.waited_s += time.monotonic() - began

    def put(self, to: Tensor, values: Tensor) -> None:
        """Copies the host's values to the device. Call `wait` before reading or writing them there."""
        if self._back is None:
            to.copy_(values)
            return
        with self._back:
            to.copy_(values, non_blocking=True)

    def wait(self) -> None:
        """Waits in this thread until all values that were put have arrived."""
        if self._back is not None:
            began = time.monotonic()
            self._back.synchronize()
            self.waited_s += time.monotonic() - began


def laid_out(tensors: Sequence[Tensor], *, writable: bool) -> Tensor:
    """float32[n]: the tensor itself if it has this layout and ``writable`` is set, else a copy."""
    one = tensors[0]
    if writable and len(tensors) == 1 and one.dtype is torch.float32 and one.is_contiguous() and not one.is_neg():
        return one.reshape(-1)
    return torch.cat([tensor.to(torch.float32).reshape(-1) for tensor in tensors])


def stored(tensor: Tensor) -> bool:
    """Whether the tensor's values are in memory, in rows of equal length."""
    try:
        return not tensor.is_nested and (tensor.data_ptr() != 0 or tensor.numel() == 0)
    except RuntimeError:  # PyTorch's wrappers around tensors have no address
        return False


def rounded(sums: Tensor, dtype: torch.dtype) -> Tensor:
    """The sums in this type. PyTorch converts NaN to 0xffff or 0x7fc0 in bfloat16, depending on the number of values
    that it converts at once: ranks with another memory layout would get other bits."""
    values = sums.to(dtype)
    return values.masked_fill_(values.isnan(), math.nan) if dtype is torch.bfloat16 else values
