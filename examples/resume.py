"""Shared training that is ended and resumed, with the same or another number of workers.

    torchrun --nproc-per-node 4 examples/resume.py --checkpoints FOLDER --steps 200

Each run continues from the newest complete checkpoint. All processes must reach the folder.
"""

import argparse
import os
from pathlib import Path

import torch
from torch import Tensor, nn

import serene.torch

RANK, WORKERS = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def batch(step: int) -> tuple[Tensor, Tensor]:
    """This process's batch for a step: points, float32[32, 16], and their classes."""
    points = torch.randn(32, 16, generator=torch.Generator().manual_seed(1000 * RANK + step))
    return points, points[:, :4].argmax(dim=1)


def save(folder: Path, step: int, model: nn.Module, optimizer: serene.torch.DistributedOptimizer) -> None:
    """Each worker has moments of its own; the parameters are the same."""
    there = folder / f"step-{step:08d}"
    there.mkdir(parents=True, exist_ok=True)
    parts = {f"optimizer-{RANK}-of-{WORKERS}.pt": optimizer.state_dict()}
    if RANK == 0:
        parts["model.pt"] = {"model": model.state_dict(), "start": optimizer.start}
    for name, part in parts.items():
        torch.save(part, there / f"{name}.new")  # a process that is killed while it writes leaves no broken part
        (there / f"{name}.new").replace(there / name)


def newest(folder: Path) -> tuple[int, Path, list[Path]] | None:
    """The step of the newest complete checkpoint, its folder, and the optimizers' files by rank."""
    for there in sorted(folder.glob("step-*"), reverse=True):
        for workers in {int(file.stem.rpartition("-")[2]) for file in there.glob("optimizer-*.pt")}:
            files = [there / f"optimizer-{rank}-of-{workers}.pt" for rank in range(workers)]
            if all(file.exists() for file in [*files, there / "model.pt"]):
                return int(there.name.rpartition("-")[2]), there, files
    return None


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkpoints", type=Path, required=True, help="a folder; made if it does not exist")
    parser.add_argument("--steps", type=int, default=200, help="of the whole training, over all runs")
    parser.add_argument("--save-every", type=int, default=20, metavar="STEPS")
    parser.add_argument("--optimizer", choices=("adamw", "sgd"), default="adamw")
    parser.add_argument("--job", default="resume")
    arguments = parser.parse_args()

    torch.manual_seed(1)  # the same first parameters for all workers
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
    if arguments.optimizer == "adamw":
        own: torch.optim.Optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    else:
        own = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    first, start = 0, None
    if found := newest(arguments.checkpoints):
        first, there, files = found
        saved = torch.load(there / "model.pt")
        model.load_state_dict(saved["model"])
        start = saved["start"]  # used if the job still runs: then this process gets the parameters of the others
        if len(files) == WORKERS:
            own.load_state_dict(torch.load(files[RANK]))
        else:
            own.load_state_dict(serene.torch.mean_state([torch.load(file) for file in files]))
    optimizer = serene.torch.DistributedOptimizer(own, job=arguments.job, workers=WORKERS, start=start)
    with optimizer:
        for step in range(first, arguments.steps):
            points, labels = batch(step)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(points), labels)
            loss.backward()
            optimizer.step()
            print(f"step {step} rank {RANK} loss {loss.item():.6f}", flush=True)
            if (step + 1) % arguments.save_every == 0:
                save(arguments.checkpoints, step + 1, model, optimizer)


if __name__ == "__main__":
    main()
