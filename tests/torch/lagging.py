"""A rank that sums, step after step, until rank 0 finds OUT/over; rank 1 computes longer.

... python -m tests.torch.lagging OUT
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

dist.init_process_group("serene")
rank = dist.get_rank()
over = torch.zeros(1000)
while not over.any():
    time.sleep(0.3 if rank == 1 else 0.05)
    over.fill_(float(rank == 0 and Path(sys.argv[1], "over").exists()))
    dist.all_reduce(over)
dist.destroy_process_group()
