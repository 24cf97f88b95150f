"""PyTorch through the switch: the process group ``serene``, and optimizers that train together.

    torch.distributed.init_process_group("serene")      # sums of floating-point numbers go through the switch

Importing this package registers the process group, and `import torch` does so by itself (`serene/autoload.py`). So that
this takes no time, what needs more than PyTorch is imported when it is used. docs/pytorch.md says what goes through the
switch and what through gloo.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

if TYPE_CHECKING:
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
    "mean_with_residual": "serene.torch.feedback",
}
__all__ = [
    "BACKEND",
    "CollectiveFailed",
    "DistributedOptimizer",
    "ErrorFeedback",
    "SwitchGroup",
    "mean_with_residual",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULE_OF[name]), name)


def _make(options: Any, _: object) -> dist.ProcessGroup:
    """PyTorch calls this whenever a group of this backend is made. options: its `_DistributedBackendOptions`."""
    from torch._C._distributed_c10d import PrefixStore

    from serene.torch.group import SwitchGroup

    # Ranks that torchrun starts again would else find what the ranks before them have left in the store.
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
