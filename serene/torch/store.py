"""PyTorch's store, through which ranks tell each other things."""

from __future__ import annotations

import os

from torch._C._distributed_c10d import PrefixStore, Store


def of_this_attempt(store: Store) -> PrefixStore:
    """The store with keys of its own for each attempt: ranks that torchrun starts again would else find what the ranks
    before them have left there."""
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return PrefixStore(f"attempt {attempt}", store)
