"""Models, data and stragglers: the same for the same seed, and clear about what they cannot do."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from serene.errors import SereneError
from workers import data, models, stragglers
from workers.reference import train
from workers.training import Recipe, Trainer


@pytest.mark.parametrize(("name", "parameters"), [("mlp", 79_510), ("cnn", 9_098)])
def test_models_have_their_size_and_are_the_same_on_all_workers(name: str, parameters: int) -> None:
    recipe = Recipe(model=name)
    first, second = Trainer(recipe, 0), Trainer(recipe, 1)
    assert first.size == parameters
    assert np.array_equal(first.parameters, second.parameters)
    assert not np.array_equal(first.gradient(1)[0], second.gradient(1)[0])
    assert np.array_equal(first.gradient(1)[0], Trainer(recipe, 0).gradient(1)[0])


def test_a_step_follows_the_sum() -> None:
    trainer = Trainer(Recipe(workers=4, learning_rate=0.5), 0)
    before, delta = trainer.parameters.copy(), np.linspace(-1, 1, trainer.size, dtype=np.float32)
    trainer.apply(delta)
    assert np.allclose(trainer.parameters, before - 0.125 * delta, atol=1e-7)


def test_the_reference_learns() -> None:
    recipe = Recipe(workers=2, steps=60)
    trainer = Trainer(recipe, 0)
    before = trainer.accuracy()
    trainer.apply(np.zeros(trainer.size, np.float32))
    assert trainer.accuracy() == before < 0.3
    trainer.parameters = train(recipe)
    trainer.apply(np.zeros(trainer.size, np.float32))
    assert trainer.accuracy() > 0.8


def test_digits_are_split_and_sharded() -> None:
    digits = data.load("digits")
    assert digits.train_images.shape == (1500, 1, 28, 28)
    assert len(digits.test_labels) == 297
    assert float(digits.train_images.min()) >= 0 and float(digits.train_images.max()) <= 1
    shards = [digits.shard(worker, 4) for worker in range(4)]
    assert sum(len(shard.train_labels) for shard in shards) == 1500
    assert all(set(shard.train_labels.tolist()) == set(range(10)) for shard in shards)


def _idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def test_mnist_is_read_from_idx_files(tmp_path: Path) -> None:
    folder, random = tmp_path / "mnist", np.random.default_rng(0)
    folder.mkdir()
    for name, count in (("train", 20), ("t10k", 5)):
        (folder / f"{name}-images-idx3-ubyte").write_bytes(_idx(random.integers(0, 256, (count, 28, 28), np.uint8)))
        labels = _idx((np.arange(count) % 10).astype(np.uint8))
        (folder / f"{name}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
    mnist = data.load("mnist", tmp_path)
    assert mnist.shape == (1, 28, 28)
    assert mnist.train_labels.tolist() == [i % 10 for i in range(20)]
    (folder / "t10k-images-idx3-ubyte").write_bytes(b"nonsense")
    with pytest.raises(data.DataError, match="not an IDX file"):
        data.load("mnist", tmp_path)


def test_cifar10_is_read_from_its_binary_version(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    records = np.random.default_rng(0).integers(0, 256, (4, 3073), np.uint8)
    records[:, 0] = range(4)
    for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
        (folder / name).write_bytes(records.tobytes())
    cifar = data.load("cifar10", tmp_path)
    assert cifar.shape == (3, 32, 32)
    assert len(cifar.train_labels) == 20
    (folder / "test_batch.bin").write_bytes(b"x")
    with pytest.raises(data.DataError, match=r"records of 3,073"):
        data.load("cifar10", tmp_path)


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(data.DataError, match=r"train-images-idx3-ubyte.*SERENE_DATA"):
        data.load("mnist", tmp_path)


def test_slow_workers_are_slow_as_often_and_as_long_as_said() -> None:
    profile = stragglers.parse("slow_worker")
    delays = np.array([profile.delay(1, iteration, 0.1, seed=3) for iteration in range(1, 4001)])
    late = delays[delays > 0]
    assert abs(len(late) / 4000 - 0.15) < 0.02
    assert late.min() >= 0.05 and late.max() <= 0.2
    assert abs(late.mean() - 0.125) < 0.01
    assert profile.delay(1, 7, 0.1, seed=3) == profile.delay(1, 7, 0.1, seed=3)
    assert any(profile.delay(1, i, 0.1, 3) != profile.delay(2, i, 0.1, 3) for i in range(1, 50))


def test_the_other_profiles() -> None:
    assert stragglers.parse("none").delay(0, 1, 1.0, 1) == 0
    slow = stragglers.parse("heterogeneous:factor=3,workers=1+2")
    assert [slow.delay(worker, 1, 0.1, 1) for worker in range(3)] == pytest.approx([0, 0.2, 0.2])
    failing = stragglers.parse("failure:worker=2,iteration=5,pause_s=7")
    assert [failing.delay(2, iteration, 0.1, 1) for iteration in (4, 5, 6)] == [0, 7, 0]
    assert failing.delay(1, 5, 0.1, 1) == 0


@pytest.mark.parametrize(
    "text", ["", "slow", "slow_worker:x=1", "slow_worker:probability", "slow_worker:probability=2", "slow_worker:low=3",
             "heterogeneous:factor=0.5", "failure:iteration=0", "failure:worker=x", "none:x=1"]
)  # fmt: skip
def test_profiles_that_make_no_sense(text: str) -> None:
    with pytest.raises(stragglers.BadStraggler, match=r"there are|expected|it has"):
        stragglers.parse(text)


def test_names_that_do_not_exist() -> None:
    with pytest.raises(SereneError, match="there are mlp or cnn"):
        models.check_model("gpt")
    with pytest.raises(SereneError, match="there are digits, mnist or cifar10"):
        data.check_dataset("imagenet")
