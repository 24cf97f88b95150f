"""The data sets of images. ``digits`` comes with scikit-learn, ``fashion-mnist`` with a Debian package. The others are
read from files that the user has downloaded."""

from __future__ import annotations

import gzip
import importlib.util
import math
import os
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from serene.errors import SereneError, choices

if TYPE_CHECKING:
    import torch

ENVIRONMENT = "SERENE_DATA"
GIVE_FOLDER = f"name the folder with DATA_DIR= (make), --data-dir or ${ENVIRONMENT}"
CLASSES = 10  # of each data set
DIGITS_FOR_TEST = 297  # of 1,797
FASHION_PACKAGE, FASHION_DIRECTORY = "dataset-fashion-mnist", Path("/usr/share/datasets/fashion-mnist")


class DataError(SereneError):
    """No data set has that name, or its files are missing or damaged. The message names the files and their folder."""


@dataclass(frozen=True)
class Dataset:
    """Images, float32[n, channels, height, width] from 0 to 1, and labels, int64[n], for training and for testing."""

    name: str
    train_images: torch.Tensor
    train_labels: torch.Tensor
    test_images: torch.Tensor
    test_labels: torch.Tensor
    classes: int = CLASSES

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of an image."""
        channels, height, width = self.train_images.shape[1:]
        return int(channels), int(height), int(width)

    def shard(self, worker: int, workers: int) -> Dataset:
        """A worker's own training images, and the whole test set. A worker gets every N-th image, and so images of all
        classes."""
        part = slice(worker, None, workers)
        # Copies: with a view, the whole data set would stay in every worker's memory.
        return replace(self, train_images=self.train_images[part].clone(), train_labels=self.train_labels[part].clone())

    def batch(self, size: int, seed: int, worker: int, iteration: int) -> tuple[torch.Tensor, torch.Tensor]:
        """``size`` images, drawn with replacement, and their labels. They depend only on seed, worker and iteration. So
        a restarted worker gets the batches that it would have had without the restart."""
        import torch

        chosen = np.random.default_rng((seed, worker, iteration)).integers(len(self.train_labels), size=size)
        index = torch.from_numpy(chosen)
        return self.train_images[index], self.train_labels[index]


@dataclass(frozen=True)
class Pictures:
    """Images as they are in their file: integers from 0 (black) to ``white``, [n, channels, height, width], and their
    labels, [n]."""

    images: np.ndarray
    labels: np.ndarray
    white: int = 255
    side: int | None = None  # `tensors` scales height and width to this; None: no scaling

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of an image after scaling."""
        channels, height, width = self.images.shape[1:]
        return channels, self.side or height, self.side or width

    def tensors(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Images and labels in the format of `Dataset`."""
        import torch

        scaled = self.images.astype(np.float32)
        scaled /= self.white
        images, labels = torch.from_numpy(scaled), torch.from_numpy(self.labels.astype(np.int64))
        if self.side is not None:
            size = (self.side, self.side)
            images = torch.nn.functional.interpolate(images, size=size, mode="bilinear", align_corners=False)
        return images, labels


Files = tuple[Pictures, Pictures]  # for training and for testing


def data_directory() -> Path:
    """The folder of data sets without --data-dir: $SERENE_DATA, by default ~/.local/share/serene/data."""
    try:
        return Path(os.environ.get(ENVIRONMENT) or Path.home() / ".local/share/serene/data")
    except RuntimeError:
        raise DataError(f"this user has no home directory, and {ENVIRONMENT} names no folder for data sets") from None


def _digits(directory: Path) -> Files:
    """The 1,797 scanned digits of the UCI repository, which scikit-learn includes. They are 8x8 and scaled to 28x28."""
    # sklearn.datasets.load_digits reads the same file, but importing it takes as long as importing PyTorch.
    package = importlib.util.find_spec("sklearn")
    if package is None or package.origin is None:
        raise DataError("the digits come with scikit-learn, which is not installed: pip install scikit-learn")
    rows = np.loadtxt(Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz", delimiter=",")
    images, labels = rows[:, :-1].reshape(-1, 1, 8, 8), rows[:, -1]  # a row: 64 pixels from 0 to 16, and the digit
    # Shuffled, because the file is sorted by writer, and the test set needs digits of all writers.
    order = np.random.default_rng(0).permutation(len(labels))
    test, train = order[:DIGITS_FOR_TEST], order[DIGITS_FOR_TEST:]
    return Pictures(images[train], labels[train], 16, 28), Pictures(images[test], labels[test], 16, 28)


def _read(path: Path) -> bytes:
    """A file's content; if only its .gz exists, that file's, decompressed. Raises DataError."""
    for candidate, opener in ((path, open), (path.with_name(path.name + ".gz"), gzip.open)):
        if candidate.is_file():
            try:
                with opener(candidate, "rb") as file:
                    return file.read()
            except (OSError, EOFError, zlib.error) as error:  # EOFError, zlib.error: a .gz that is truncated or damaged
                raise DataError(f"cannot read {candidate}: {error}") from error
    raise DataError(f"{path} is missing (or {path.name}.gz); {GIVE_FOLDER}")


def _idx(path: Path, dimensions: int) -> np.ndarray:
    """The uint8 array in a file of MNIST's IDX format. Raises DataError if it does not have this number of
    dimensions."""
    data = _read(path)
    head = 4 + 4 * dimensions
    if len(data) < head or data[:4] != bytes([0, 0, 8, dimensions]):
        raise DataError(f"{path} is not an IDX file of {dimensions} dimensions")
    shape = struct.unpack(f">{dimensions}I", data[4:head])
    if len(data) != head + math.prod(shape):
        raise DataError(f"{path} holds {len(data) - head} values; its header declares {math.prod(shape)}")
    return np.frombuffer(data, np.uint8, offset=head).reshape(shape)


def _idx_files(folder: Path) -> Files:
    """MNIST's four files. Other data sets in its format use the same file names."""

    def part(part: str) -> Pictures:
        images = _idx(folder / f"{part}-images-idx3-ubyte", 3)
        labels = _idx(folder / f"{part}-labels-idx1-ubyte", 1)
        return _checked(images[:, None], labels, folder)

    return part("train"), part("t10k")


def _mnist(directory: Path) -> Files:
    return _idx_files(directory / "mnist")


def _fashion_mnist(directory: Path) -> Files:
    """60,000 and 10,000 images of clothes in MNIST's format. The user's own copy takes precedence over the
    package's."""
    own = directory / "fashion-mnist"
    if not own.is_dir() and not FASHION_DIRECTORY.is_dir():
        raise DataError(
            f"fashion-mnist is neither in {own} nor in {FASHION_DIRECTORY}: install the Debian package "
            f"{FASHION_PACKAGE} (apt-get install {FASHION_PACKAGE}), or {GIVE_FOLDER}"
        )
    return _idx_files(own if own.is_dir() else FASHION_DIRECTORY)


def _cifar10(directory: Path) -> Files:
    """CIFAR-10's binary version. A record is a label of one byte and an image of 3 x 32 x 32 bytes."""
    folder = directory / "cifar-10-batches-bin"

    def part(names: list[str]) -> Pictures:
        raw = b"".join(_read(folder / name) for name in names)
        if len(raw) % 3073:
            raise DataError(f"{folder}: {len(raw)} bytes are not records of 3,073; expected CIFAR-10's binary version")
        records = np.frombuffer(raw, np.uint8).reshape(-1, 3073)
        return _checked(records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0], folder)

    return part([f"data_batch_{i}.bin" for i in range(1, 6)]), part(["test_batch.bin"])


def _checked(images: np.ndarray, labels: np.ndarray, where: Path) -> Pictures:
    if len(images) != len(labels) or not len(labels) or labels.max() >= CLASSES:
        raise DataError(
            f"{where}: {len(images)} images and {len(labels)} labels do not make a dataset of {CLASSES} classes"
        )
    return Pictures(images, labels)


DATASETS: Mapping[str, Callable[[Path], Files]] = {
    "digits": _digits,
    "fashion-mnist": _fashion_mnist,
    "mnist": _mnist,
    "cifar10": _cifar10,
}


def check_dataset(name: str) -> None:
    """Checks a data set's name. Raises DataError, which names the valid ones."""
    if name not in DATASETS:
        raise DataError(f"no dataset {name!r}; expected {choices(DATASETS)}")


_KEPT: dict[tuple[str, Path], Dataset] = {}


def _files(name: str, directory: Path | None) -> Files:
    check_dataset(name)
    return DATASETS[name](directory or data_directory())


def shape(name: str, directory: Path | None = None) -> tuple[int, int, int]:
    """Channels, height and width of a data set's images. Reads its files and raises the same errors as `load`, but does
    not import PyTorch."""
    kept = _KEPT.get((name, directory or data_directory()))
    return kept.shape if kept is not None else _files(name, directory)[0].shape


def load(name: str, directory: Path | None = None) -> Dataset:
    """A data set by name. Raises DataError, which names a missing file and its folder."""
    kept = _KEPT.get((name, directory or data_directory()))
    if kept is not None:
        return kept
    train, test = _files(name, directory)
    return Dataset(name, *train.tensors(), *test.tensors())


def keep(name: str, directory: Path | None = None) -> None:
    """Reads a data set into memory. `load` then returns it from there, also in processes forked from this one."""
    _KEPT[name, directory or data_directory()] = load(name, directory)
