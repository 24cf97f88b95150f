"""How the tests start the ranks of `tests.torch.ddp_worker`.

They are forked from a process that has no threads and has imported PyTorch, and what its optimisers import when they
are first used, once for all: two seconds of a processor otherwise, in each of them.
"""

from __future__ import annotations

import multiprocessing

from tests.torch import ddp_worker

RANKS = multiprocessing.get_context("forkserver")
RANKS.set_forkserver_preload(["torch._dynamo", ddp_worker.__name__])
