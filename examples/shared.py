"""Four workers train one model, each with its own optimizer, under any strategy.

serenectl up --local
python examples/shared.py      # four times: by hand, by torchrun or by srun
"""

import torch
from torch import nn

from serene.torch import DistributedOptimizer

torch.manual_seed(1)  # the same first parameters for all workers
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 4))
own = torch.optim.AdamW(model.parameters(), lr=1e-3)
torch.seed()  # different data on each worker
with DistributedOptimizer(own, job="example", workers=4) as optimizer:
    for _ in range(200):
        points = torch.randn(32, 64)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(points), points[:, :4].argmax(dim=1))
        loss.backward()
        optimizer.step()
points = torch.randn(10_000, 64)
loss = nn.functional.cross_entropy(model(points), points[:, :4].argmax(dim=1))
print(f"worker {optimizer.worker}: loss {loss.item():.3f}, sum of the parameters "
      f"{sum(parameter.double().sum().item() for parameter in model.parameters()):.9f}")  # fmt: skip
