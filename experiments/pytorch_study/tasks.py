"""The study's tasks: ResNet-18 learns pictures of clothes, the transformer the texts of licenses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from serene.errors import SereneError
from serene.experiments.pytorch_study.models import CONTEXT, Transformer, resnet18
from serene.workers.data import load

LICENSES = Path("/usr/share/common-licenses")  # Debian's package base-files, which every system of it has
EVERY, PASSAGE = 10, 1024  # every tenth passage of so many bytes is for the test
TEST_PICTURES = 2000
TEST_BATCH = 250


@dataclass(frozen=True)
class Task:
    """A model, its optimiser, and pairs of inputs and labels: ``train(generator, n)`` draws n examples, ``test`` is the
    whole test set. batch: of each rank."""

    model: nn.Module
    optimiser: torch.optim.Optimizer
    train: Callable[[torch.Generator, int], tuple[Tensor, Tensor]]
    test: tuple[Tensor, Tensor]
    batch: int


def clothes() -> Task:
    """ResNet-18 on Fashion-MNIST. Raises DataError."""
    data = load("fashion-mnist")
    model = resnet18(data.shape[0], data.classes)

    def train(generator: torch.Generator, count: int) -> tuple[Tensor, Tensor]:
        index = torch.randint(len(data.train_labels), (count,), generator=generator)
        return data.train_images[index], data.train_labels[index]

    test = data.test_images[:TEST_PICTURES], data.test_labels[:TEST_PICTURES]
    return Task(model, torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, fused=True), train, test, batch=8)


def licenses(folder: Path = LICENSES) -> Task:
    """The transformer on the texts of licenses, byte by byte. Raises SereneError if the folder has no files."""
    files = sorted(path for path in folder.glob("*") if path.is_file() and not path.is_symlink())
    if not files:
        raise SereneError(f"{folder} has no texts: it belongs to Debian's package base-files")
    passages = [
        torch.from_numpy(np.frombuffer(text[start : start + PASSAGE], np.uint8).astype(np.int64))
        for text in (path.read_bytes() for path in files)
        for start in range(0, len(text) - CONTEXT, PASSAGE)
    ]
    passages = [passage for passage in passages if len(passage) > CONTEXT]
    learned = torch.cat([passage for number, passage in enumerate(passages) if number % EVERY])
    held_out = [_window(passage, at) for passage in passages[::EVERY] for at in _starts(passage)]
    model = Transformer()

    def train(generator: torch.Generator, count: int) -> tuple[Tensor, Tensor]:
        starts = torch.randint(len(learned) - CONTEXT, (count,), generator=generator)
        windows = [_window(learned, int(start)) for start in starts]
        return torch.stack([text for text, _ in windows]), torch.stack([following for _, following in windows])

    test = torch.stack([text for text, _ in held_out]), torch.stack([following for _, following in held_out])
    return Task(model, torch.optim.Adam(model.parameters(), lr=0.002), train, test, batch=8)


def _window(text: Tensor, start: int) -> tuple[Tensor, Tensor]:
    """CONTEXT bytes from a place on, and for each of them the next one."""
    return text[start : start + CONTEXT], text[start + 1 : start + CONTEXT + 1]


def _starts(passage: Tensor) -> Iterator[int]:
    """Where the windows of a passage begin that do not overlap."""
    return iter(range(0, len(passage) - CONTEXT, CONTEXT))


TASKS: Mapping[str, Callable[[], Task]] = {"resnet": clothes, "transformer": licenses}
