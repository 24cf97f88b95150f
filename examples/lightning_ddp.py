"""Lightning. Only `process_group_backend` selects Serene.

torchrun --nproc-per-node 4 examples/lightning_ddp.py
"""

import argparse
import json
import os

import lightning
import torch
import torch.distributed as dist
from ddp import dataset, network
from lightning.pytorch.strategies import DDPStrategy
from torch import Tensor, nn
from torch.utils.data import DataLoader


class Classifier(lightning.LightningModule):
    def __init__(self, optimiser_name: str) -> None:
        super().__init__()
        self.network = network()
        self.optimiser_name = optimiser_name
        self.losses: list[float] = []  # averaged over the ranks

    def training_step(self, batch: list[Tensor]) -> Tensor:
        inputs, labels = batch
        loss = nn.functional.cross_entropy(self.network(inputs), labels)
        mean = loss.detach().clone()
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        self.losses.append(mean.item())
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        if self.optimiser_name == "sgd":
            return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)
        return torch.optim.Adam(self.parameters(), lr=0.002)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="serene")
    parser.add_argument("--optimiser", choices=("sgd", "adam"), default="sgd")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--losses", help="a file for the losses of all steps, averaged over the ranks")
    arguments = parser.parse_args()

    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
        strategy=DDPStrategy(process_group_backend=arguments.backend),
        max_steps=arguments.steps,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    )
    classifier = Classifier(arguments.optimiser)
    trainer.fit(classifier, DataLoader(dataset(), batch_size=32, shuffle=True))
    if trainer.is_global_zero:
        print(f"step {len(classifier.losses)}: loss {classifier.losses[-1]:.4f}", flush=True)
        if arguments.losses:
            with open(arguments.losses, "w") as file:
                json.dump(classifier.losses, file)


if __name__ == "__main__":
    main()
