"""The study's tasks: a CNN learns pictures of clothes, a small transformer the texts of licenses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from serene.errors import SereneError
from serene.workers.data import load

LICENSES = Path("/usr/share/common-licenses")  # Debian's package base-files, which every system of it has
EVERY, PASSAGE = 10, 1024  # every tenth passage of so many bytes is for the test
TEST_PICTURES = 1000
TEST_TEXTS = 200
TARGETS = {"fashion": 0.75, "transformer": 0.25}  # accuracies, the time to which is reported


@dataclass(frozen=True)
class Task:
    """Pairs of inputs and labels: ``train(generator, n)`` draws n examples, ``test`` is the test set. model: makes one.
    batch: of each worker. rates: learning rates by optimizer. target: of `TARGETS`."""

    model: Callable[[], nn.Module]
    train: Callable[[torch.Generator, int], tuple[Tensor, Tensor]]
    test: tuple[Tensor, Tensor]
    batch: int
    rates: Mapping[str, float]
    target: float


@cache
def clothes() -> Task:
    """The CNN on Fashion-MNIST. Raises DataError."""
    data = load("fashion-mnist")

    def train(generator: torch.Generator, count: int) -> tuple[Tensor, Tensor]:
        index = torch.randint(len(data.train_labels), (count,), generator=generator)
        return data.train_images[index], data.train_labels[index]

    test = data.test_images[:TEST_PICTURES], data.test_labels[:TEST_PICTURES]
    rates = {"sgd": 0.05, "adamw": 0.005}
    return Task(lambda: cnn(data.shape[0], data.classes), train, test, batch=16, rates=rates, target=TARGETS["fashion"])


@cache
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

    def train(generator: torch.Generator, count: int) -> tuple[Tensor, Tensor]:
        starts = torch.randint(len(learned) - CONTEXT, (count,), generator=generator)
        windows = [_window(learned, int(start)) for start in starts]
        return torch.stack([text for text, _ in windows]), torch.stack([following for _, following in windows])

    chosen = held_out[:: max(len(held_out) // TEST_TEXTS, 1)]
    test = torch.stack([text for text, _ in chosen]), torch.stack([following for _, following in chosen])
    rates = {"sgd": 0.05, "adamw": 0.004}
    return Task(Transformer, train, test, batch=8, rates=rates, target=TARGETS["transformer"])


def _window(text: Tensor, start: int) -> tuple[Tensor, Tensor]:
    """CONTEXT bytes from a place on, and for each of them the next one."""
    return text[start : start + CONTEXT], text[start + 1 : start + CONTEXT + 1]


def _starts(passage: Tensor) -> Iterator[int]:
    """Where the windows of a passage begin that do not overlap."""
    return iter(range(0, len(passage) - CONTEXT, CONTEXT))


TASKS: Mapping[str, Callable[[], Task]] = {"fashion": clothes, "transformer": licenses}


BYTES = 256  # values that a byte may have
CONTEXT = 64  # bytes of text that the transformer sees


def cnn(channels: int = 1, classes: int = 10) -> nn.Module:
    """Two convolutions and a linear layer, for 28x28 pictures: 9,098 parameters."""
    return nn.Sequential(
        nn.Conv2d(channels, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(16 * 7 * 7, classes),
    )  # fmt: skip


class Transformer(nn.Module):
    """A transformer that predicts each byte from those before it: 2 layers of width 64, 137,000 parameters."""

    def __init__(self, width: int = 64, layers: int = 2) -> None:
        super().__init__()
        self.bytes = nn.Embedding(BYTES, width)
        self.positions = nn.Parameter(0.02 * torch.randn(CONTEXT, width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, BYTES)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(CONTEXT))

    def forward(self, text: Tensor) -> Tensor:
        """Text, int64[n, CONTEXT], to the logits of each byte's successor, float32[n, BYTES, CONTEXT]."""
        state = self.bytes(text) + self.positions
        for layer in self.layers:
            state = layer(state, src_mask=self.mask, is_causal=True)
        logits: Tensor = self.out(self.norm(state))
        return logits.transpose(1, 2)
