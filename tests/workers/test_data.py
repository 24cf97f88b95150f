"""Datasets, shards and batches; files that are missing or damaged, or have other contents."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from serene.workers import data
from serene.workers.data import DataError, Dataset, load

IMAGES, LABELS = 40, 10


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load("digits")


def test_digits_have_the_documented_shape_and_range(digits: Dataset) -> None:
    assert digits.shape == data.shape("digits") == (1, 28, 28)
    assert len(digits.train_images) == len(digits.train_labels) == 1500
    assert len(digits.test_images) == len(digits.test_labels) == 297
    assert digits.train_images.dtype == torch.float32 and digits.train_labels.dtype == torch.int64
    for images in (digits.train_images, digits.test_images):
        assert images.min() >= 0 and 0.9 < images.max() <= 1
    assert torch.bincount(digits.test_labels, minlength=10).min() >= 15


def test_digits_equal_those_of_scikit_learn(digits: Dataset) -> None:
    """We read scikit-learn's file ourselves."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    small = torch.from_numpy(images.reshape(-1, 1, 8, 8).astype(np.float32) / 16)
    large = torch.nn.functional.interpolate(small, size=(28, 28), mode="bilinear", align_corners=False)
    theirs = sorted((int(label), image.numpy().tobytes()) for image, label in zip(large, labels, strict=True))
    ours = [
        (int(label), image.numpy().tobytes())
        for images, labels in ((digits.train_images, digits.train_labels), (digits.test_images, digits.test_labels))
        for image, label in zip(images, labels, strict=True)
    ]
    assert sorted(ours) == theirs


def test_digits_split_is_fixed_and_disjoint(digits: Dataset) -> None:
    again = load("digits")
    assert torch.equal(digits.test_images, again.test_images) and torch.equal(digits.train_labels, again.train_labels)
    seen = {image.numpy().tobytes() for image in digits.train_images}
    assert not any(image.numpy().tobytes() in seen for image in digits.test_images)


@pytest.mark.parametrize("workers", [1, 3, 32])
def test_shards_partition_the_training_set(digits: Dataset, workers: int) -> None:
    shards = [digits.shard(worker, workers) for worker in range(workers)]
    assert sum(len(shard.train_labels) for shard in shards) == 1500
    pictures = {image.numpy().tobytes() for shard in shards for image in shard.train_images}
    assert pictures == {image.numpy().tobytes() for image in digits.train_images}
    for shard in shards:
        assert len(set(shard.train_labels.tolist())) == 10, "a worker that never sees a class"
        assert torch.equal(shard.test_images, digits.test_images)


def test_batch_is_determined_by_seed_worker_and_iteration(digits: Dataset) -> None:
    shard = digits.shard(1, 4)
    images, labels = shard.batch(32, seed=7, worker=1, iteration=5)
    assert images.shape == (32, 1, 28, 28) and labels.shape == (32,)
    shard.batch(32, seed=7, worker=1, iteration=6)
    assert torch.equal(shard.batch(32, seed=7, worker=1, iteration=5)[0], images)
    for other in ({"seed": 8}, {"worker": 2}, {"iteration": 6}):
        numbers = {"seed": 7, "worker": 1, "iteration": 5, **other}
        assert not torch.equal(shard.batch(32, **numbers)[0], images), other


def idx(values: np.ndarray) -> bytes:
    return bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


def mnist_files(directory: Path, *, compressed: bool = False, folder: str = "mnist") -> dict[str, np.ndarray]:
    """MNIST in small: the same files with fewer images."""
    rng = np.random.default_rng(1)
    arrays = {}
    for part in ("train", "t10k"):
        arrays[f"{part}-images-idx3-ubyte"] = rng.integers(0, 256, (IMAGES, 28, 28)).astype(np.uint8)
        arrays[f"{part}-labels-idx1-ubyte"] = (np.arange(IMAGES) % LABELS).astype(np.uint8)
    (directory / folder).mkdir()
    for name, values in arrays.items():
        if compressed:
            (directory / folder / f"{name}.gz").write_bytes(gzip.compress(idx(values)))
        else:
            (directory / folder / name).write_bytes(idx(values))
    return arrays


@pytest.mark.parametrize("compressed", [False, True])
def test_mnist_files_are_read(tmp_path: Path, compressed: bool) -> None:
    arrays = mnist_files(tmp_path, compressed=compressed)
    mnist = load("mnist", tmp_path)
    assert mnist.shape == data.shape("mnist", tmp_path) == (1, 28, 28)
    expected = arrays["t10k-images-idx3-ubyte"][:, None].astype(np.float32) / 255
    assert np.array_equal(mnist.test_images.numpy(), expected)
    assert np.array_equal(mnist.train_labels.numpy(), arrays["train-labels-idx1-ubyte"])


@pytest.mark.skipif(not data.FASHION_DIRECTORY.is_dir(), reason=f"needs {data.FASHION_PACKAGE}")
def test_fashion_mnist_is_read_from_the_debian_package(tmp_path: Path) -> None:
    fashion = load("fashion-mnist", tmp_path)
    assert fashion.shape == (1, 28, 28)
    assert torch.bincount(fashion.train_labels).tolist() == [6000] * 10
    assert torch.bincount(fashion.test_labels).tolist() == [1000] * 10
    assert fashion.test_images.min() == 0 and fashion.test_images.max() == 1
    # As its authors publish it: the training pictures' mean and standard deviation.
    mean, deviation = float(fashion.train_images.mean()), float(fashion.train_images.std())
    assert mean == pytest.approx(0.2860, abs=1e-4) and deviation == pytest.approx(0.3530, abs=1e-4)


def test_fashion_mnist_in_the_data_directory_takes_precedence(tmp_path: Path) -> None:
    arrays = mnist_files(tmp_path, compressed=True, folder="fashion-mnist")
    fashion = load("fashion-mnist", tmp_path)
    assert np.array_equal(fashion.train_labels.numpy(), arrays["train-labels-idx1-ubyte"])
    assert len(fashion.train_images) == IMAGES


def test_missing_fashion_mnist_names_the_debian_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "FASHION_DIRECTORY", tmp_path / "nowhere")
    with pytest.raises(
        DataError, match=r"install the Debian package dataset-fashion-mnist .*, or name the folder with DATA_DIR= "
    ):
        load("fashion-mnist", tmp_path)


def test_shard_does_not_keep_the_whole_data_set_in_memory(digits: Dataset) -> None:
    shard = digits.shard(1, 3)
    assert shard.train_images.untyped_storage().nbytes() == 4 * shard.train_images.numel()


def test_cifar10_files_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    rng = np.random.default_rng(1)
    records = rng.integers(0, 256, (6, 4, 3073)).astype(np.uint8)
    records[:, :, 0] %= 10
    for number, name in enumerate([*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]):
        (folder / name).write_bytes(records[number].tobytes())
    cifar = load("cifar10", tmp_path)
    assert cifar.shape == data.shape("cifar10", tmp_path) == (3, 32, 32)
    assert len(cifar.train_labels) == 20 and len(cifar.test_labels) == 4
    assert np.array_equal(cifar.train_labels.numpy(), records[:5, :, 0].reshape(-1))
    second = records[0, 1, 1:].reshape(3, 32, 32).astype(np.float32) / 255
    assert np.array_equal(cifar.train_images[1].numpy(), second)
    (folder / "test_batch.bin").write_bytes(b"\0" * 3000)
    with pytest.raises(DataError, match="not records of 3,073"):
        load("cifar10", tmp_path)


@pytest.mark.parametrize(
    ("dataset", "file"),
    [("mnist", "mnist/train-images-idx3-ubyte"), ("cifar10", "cifar-10-batches-bin/data_batch_1.bin")],
)
def test_missing_data_file_is_named(tmp_path: Path, dataset: str, file: str) -> None:
    with pytest.raises(DataError) as raised:
        load(dataset, tmp_path)
    assert str(tmp_path / file) in str(raised.value)
    assert "DATA_DIR= (make), --data-dir or $SERENE_DATA" in str(raised.value)


def test_serene_data_variable_sets_the_data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mnist_files(tmp_path)
    monkeypatch.setenv("SERENE_DATA", str(tmp_path))
    assert len(load("mnist").train_labels) == IMAGES
    monkeypatch.delenv("SERENE_DATA")
    assert data.data_directory() == Path.home() / ".local/share/serene/data"


GOOD = idx(np.zeros((IMAGES, 28, 28), np.uint8))


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("train-images-idx3-ubyte", b"", "not an IDX file of 3 dimensions"),
        ("train-images-idx3-ubyte", b"<html>404</html>", "not an IDX file of 3 dimensions"),
        ("train-images-idx3-ubyte", GOOD[:-1], "holds 31359 values; its header declares 31360"),
        ("train-images-idx3-ubyte", GOOD[:4] + b"\xff" * 12, "its header declares 79228162458924105385300197375"),
        ("train-images-idx3-ubyte", idx(np.zeros((IMAGES - 1, 28, 28), np.uint8)), "39 images and 40 labels"),
        ("train-labels-idx1-ubyte", idx(np.full(IMAGES, 10, np.uint8)), "10 classes"),
        ("train-images-idx3-ubyte.gz", gzip.compress(GOOD)[:-20], r"cannot read .*train-images-idx3-ubyte\.gz"),
        ("train-images-idx3-ubyte.gz", gzip.compress(GOOD)[:12] + b"\xff" * 40, r"cannot read .*ubyte\.gz"),
        ("train-images-idx3-ubyte.gz", b"not gzip", r"cannot read .*train-images-idx3-ubyte\.gz"),
    ],
)
def test_damaged_data_file_is_refused(tmp_path: Path, file: str, content: bytes, message: str) -> None:
    mnist_files(tmp_path, compressed=file.endswith(".gz"))
    (tmp_path / "mnist" / file).write_bytes(content)
    with pytest.raises(DataError, match=message):
        load("mnist", tmp_path)
