"""PyTorch through the switch: the process group ``serene``, and optimizers that train together.

    torch.distributed.init_process_group("serene")      # sums of floating-point numbers go through the switch

Importing this package registers the process group; `import torch` imports it (`serene/autoload.py`). To keep this fast,
modules that need more than PyTorch are imported when they are used. docs/pytorch.md lists the collectives that go
through the switch, and those that go through gloo.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

if TYPE_CHECKING:
    from serene.torch.checkpoint import mean_state as mean_state
    from serene.torch.feedback import ErrorFeedback as ErrorFeedback
    from serene.torch.feedback import mean_with_residual as mean_with_residual
    from serene.torch.group import CollectiveFailed as CollectiveFailed
    from serene.torch.group import SwitchGroup as SwitchGroup
    from serene.torch.optimizer import DistributedOptimizer as DistributedOptimizer

BACKEND = "serene"
_MODULE_OF = {
    "CollectiveFailed": "serene.torch.group",
    "DistributedOptimizer": "serene.torch.optimizer",
    "ErrorFeedback": "serene.torch.feedback",
    "SwitchGroup": "serene.torch.group",
    "mean_state": "serene.torch.checkpoint",
    "mean_with_residual": "serene.torch.feedback",
}
__all__ = [
    "BACKEND",
    "CollectiveFailed",
    "DistributedOptimizer",
    "ErrorFeedback",
    "SwitchGroup",
    "mean_state",
    "mean_with_residual",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULE_OF[name]), name)


def _make(options: Any, _: object) -> dist.ProcessGroup:
    """PyTorch calls this for each new group of this backend. options: its `_DistributedBackendOptions`."""
    from torch._C._distributed_c10d import PrefixStore

    from serene.torch.group import SwitchGroup

    # Otherwise ranks that torchrun restarts would find the earlier ranks' entries in the store.
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return SwitchGroup(
        PrefixStore(f"attempt {attempt}", options.store),
        options.group_rank,
        options.group_size,
        options.timeout,
        ranks=list(options.global_ranks_in_group),
    )


if dist.is_available() and BACKEND not in dist.Backend.backend_list:
    dist.Backend.register_backend(BACKEND, _make, extended_api=True, devices=["cpu"])
