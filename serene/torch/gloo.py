"""The part of the process group that uses gloo: every collective of PyTorch's `ProcessGroup` that a subclass does not
override."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor
from torch._C._distributed_c10d import Backend, DebugLevel, get_debug_level
from torch.distributed import (  # type: ignore[attr-defined]
    PrefixStore,
    ProcessGroup,
    ProcessGroupGloo,
    Store,
    Work,
)
from torch.distributed.distributed_c10d import _create_process_group_wrapper
from torch.utils._pytree import tree_leaves, tree_map_only

from serene.torch.staging import Copies, device_of
from serene.torch.work import SwitchWork

INTERFACE = "GLOO_SOCKET_IFNAME"  # of PyTorch's: the name of gloo's network interface

# Names by which PyTorch's C++ code searches for the Python version of a method with another name in Python.
CALLED_FROM_CPP = {"recvAnysource": "recv_anysource"}


class GlooGroup(ProcessGroup):
    """One process's side of a group whose collectives are gloo's. store: with keys for this group alone. timeout: for a
    collective. address: this host's IP address for the other ranks; None: gloo finds one itself, as it does if
    $GLOO_SOCKET_IFNAME names an interface.

    PyTorch searches for a Python version of each collective, and without one calls gloo's with the GIL held. Gloo's
    threads need the GIL to release a tensor, while they hold a lock that gloo's call waits for: a deadlock. So this
    class has a Python version of each collective of the installed PyTorch. They call `_plain`, which is no Python
    class, so that its calls release the GIL.
    """

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta, address: str | None = None) -> None:
        super().__init__(rank, size)  # type: ignore[call-arg]  # the other form takes no overrides
        gloo = self._gloo = _gloo(PrefixStore("gloo", store), rank, size, timeout, address)
        if get_debug_level() == DebugLevel.DETAIL:  # compares the ranks' calls, as PyTorch does for gloo
            gloo = _create_process_group_wrapper(gloo, "detail", store, rank, size, timeout)
        kind = ProcessGroup.BackendType.GLOO
        # The overrides call gloo through `_plain`, since methods of this class would call each other.
        self._plain = ProcessGroup(PrefixStore("plain", store), rank, size)
        for group in (self, self._plain):
            group._set_default_backend(kind)
            group._register_backend(torch.device("cpu"), kind, gloo)
        self._copies: dict[torch.device, Copies] = {}  # by accelerator

    @property
    def _timeout(self) -> timedelta:
        """For a collective. PyTorch changes only gloo's (`set_timeout`)."""
        timeout: timedelta = self._gloo.options._timeout
        return timeout

    def _copies_of(self, device: torch.device) -> Copies:
        return self._copies.setdefault(device, self._copies.get(device) or Copies(device))

    def _staged(self, name: str, device: torch.device, args: tuple[Any, ...], named: dict[str, Any]) -> Work:
        """A collective of an accelerator's tensors: gloo's collective of copies in the host's memory. It begins in this
        thread, so that all ranks' collectives keep their order."""
        copies, of = self._copies_of(device), dict[int, Tensor]()
        for tensor in _tensors((args, named)):
            of[id(tensor)] = copies.pinned(tensor)
            copies.fetch(of[id(tensor)], tensor.detach())
        copies.wait_for(copies.fetched())
        host_args, host_named = tree_map_only(Tensor, lambda tensor: of[id(tensor)], (args, named))
        work: Work = getattr(self._plain, name)(*host_args, **host_named)
        written = [] if name == "send" else _outputs(args, named)

        def end() -> None:
            work.wait()
            with torch.no_grad():
                for tensor in written:
                    copies.put(tensor.detach(), of[id(tensor)])
            copies.wait()

        return _ended_by(end, written, name)


def _ended_by(end: Callable[[], object], tensors: list[Tensor], name: str) -> SwitchWork:
    """Calls ``end`` in a thread. Returns a work with these tensors, which ends with it, and fails with its error."""

    def run() -> None:
        try:
            end()
        except BaseException as error:
            work.end(error)
        else:
            work.end()

    thread = threading.Thread(target=run, name=f"serene-{name}", daemon=True)
    work = SwitchWork(tensors, lambda: thread.is_alive() or not thread.ident)
    thread.start()
    return work


def _gloo(store: Store, rank: int, size: int, timeout: timedelta, address: str | None) -> Backend:
    if address is None or os.environ.get(INTERFACE):
        return ProcessGroupGloo(store, rank, size, timeout=timeout)
    options = ProcessGroupGloo._Options()  # type: ignore[attr-defined]
    options._timeout = timeout
    options._devices = [ProcessGroupGloo.create_device(hostname=address)]
    return ProcessGroupGloo(store, rank, size, options)


def collectives() -> set[str]:
    """The names of the methods of the installed PyTorch's `ProcessGroup` that return a Work."""
    returns_work = re.compile(r"-> \S*\bWork\b")
    return {name for name, method in vars(ProcessGroup).items() if returns_work.search(method.__doc__ or "")}


def _tensors(of: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(of) if isinstance(leaf, Tensor)]


def _outputs(args: tuple[Any, ...], named: dict[str, Any]) -> list[Tensor]:
    """The tensors of a collective's first argument: its output, except for `send`."""
    return _tensors(args[0] if args else next(iter(named.values())))


def _forwarded(name: str) -> Callable[..., Work]:
    def forward(self: GlooGroup, *args: Any, **named: Any) -> Work:
        if (device := device_of(_tensors((args, named)))) is not None:
            return self._staged(name, device, args, named)
        work: Work = getattr(self._plain, name)(*args, **named)
        # gloo's works of reduce-scatter have no future. A caller cannot know whether the switch or gloo summed.
        return _ended_by(work.wait, _outputs(args, named), name) if "reduce_scatter" in name else work

    forward.__name__ = name
    forward.__qualname__ = f"{GlooGroup.__name__}.{name}"
    return forward


for _name in collectives():
    setattr(GlooGroup, _name, _forwarded(_name))
for _name, _python_name in CALLED_FROM_CPP.items():
    setattr(GlooGroup, _name, _forwarded(_python_name))
