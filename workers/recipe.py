"""The settings that are the same for all workers of a job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from serene.settings import BadSetting, Settings, one_of
from serene.strategy import parse
from serene.workers import stragglers
from serene.workers.architectures import MODELS
from serene.workers.baselines import EXCHANGES
from serene.workers.data import DATASETS
from serene.workers.packets import PACKETS


def _profile(text: str) -> str:
    stragglers.parse(text)
    return text


class Recipe(Settings):
    """``learning_rate``: None means the model's default. ``compute_ms``: emulated by sleeping."""

    workers: int = Field(default=4, description="workers of the job")
    exchange: Annotated[str, one_of(EXCHANGES)] = Field(
        default="switch", description="how gradients are exchanged: switch, server, sharded, rpc or gloo"
    )
    packets: Annotated[str, one_of(PACKETS)] = Field(
        default="compiled", description="packet encoder: compiled, numpy or scapy"
    )
    model: Annotated[str, one_of(MODELS)] = Field(default="mlp", description="mlp, cnn or cnn-large")
    dataset: Annotated[str, one_of(DATASETS)] = Field(
        default="digits", description="digits, fashion-mnist, mnist or cifar10"
    )
    data_dir: Path | None = Field(default=None, description="directory of fashion-mnist, mnist and cifar10")
    steps: int = Field(default=200, ge=1, le=10**6, description="iterations of each worker")
    batch_size: int = Field(
        default=32, ge=1, le=10**5, description="images in each worker's batch; the paper's authors use 256"
    )
    learning_rate: float | None = Field(
        default=None, ge=1e-9, le=1e30, description="default: the model's own; the paper's authors use 0.04"
    )
    seed: int = Field(default=1, ge=0, le=2**31 - 1, description="seed of parameters, batches and straggler delays")
    straggler: Annotated[str, AfterValidator(_profile)] = Field(
        default="none",
        description="none, slow_worker, heterogeneous, failure (parameters as :key=value,...) or trace:FILE",
    )
    compute_ms: float = Field(
        default=250, ge=0, le=60000, description="mean compute time of an iteration in ms; 0: no emulated time"
    )
    eval_every: int = Field(default=5, ge=1, le=10**6, description="steps from one test of the accuracy to the next")


def check_exchange(exchange: str, strategy: str, workers: int) -> None:
    """Raises SereneError for a strategy that a baseline does not support."""
    if exchange != "switch":
        parse(strategy).compile(range(workers))
    if exchange == "gloo" and strategy != "bsp":
        raise BadSetting(f"STRATEGY={strategy}: gloo's all-reduce is synchronous; expected bsp")
