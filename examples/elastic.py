"""Workers that come and go. Four begin, up to eight take part. A worker that is silent for two seconds is evicted.

serenectl up --local
python examples/elastic.py     # four times, and more at any time
torchrun --standalone --nproc-per-node 1 --max-restarts 3 examples/elastic.py     # or: torchrun restarts dead ones
"""

import torch
from torch import nn

from serene.torch import DistributedOptimizer

torch.manual_seed(1)  # the same first parameters for all workers, also for those that join later
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 4))
own = torch.optim.AdamW(model.parameters(), lr=1e-3)
torch.seed()  # different data on each worker
elastic = {"workers": 4, "places": 8, "minimum": 2, "evict_after": 2.0}
with DistributedOptimizer(own, job="elastic", **elastic, on_members=lambda n: print(n, "workers")) as optimizer:
    for _ in range(400):
        points = torch.randn(32, 64)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(points), points[:, :4].argmax(dim=1))
        loss.backward()
        optimizer.step()
points = torch.randn(10_000, 64)
loss = nn.functional.cross_entropy(model(points), points[:, :4].argmax(dim=1))
print(f"worker {optimizer.worker}: loss {loss.item():.3f}, sum of the parameters "
      f"{sum(parameter.double().sum().item() for parameter in model.parameters()):.9f}")  # fmt: skip
