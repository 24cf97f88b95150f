"""Shared training that resumes from a checkpoint: with the same number of workers as if it had not been interrupted;
with another number as a training that begins with those parameters and the mean of the moments."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer

from serene.errors import SereneError
from serene.http import CONTROLLER
from serene.torch import DistributedOptimizer, mean_state
from tests.controller.processes import until
from tests.torch.local import Local, outputs, start_ranks
from tests.torch.small import loss_of, network, train

SAVED, ALL = 20, 40  # steps
# The largest difference between two losses. Each contribution is rounded to a unit, which a new job chooses anew.
NEAR = 2e-4
pytestmark = pytest.mark.timeout(600)


def run(local: Local, folder: Path, workers: int, steps: int, optimizer: str, job: str = "resume") -> np.ndarray:
    """Runs the example; the losses of its steps, float64[steps, workers]."""
    return losses_of(outputs(started(local, folder, workers, steps, optimizer, job)), workers)


def started(
    local: Local, folder: Path, workers: int, steps: int, optimizer: str, job: str
) -> list[subprocess.Popen[str]]:
    given = ["--checkpoints", str(folder), "--steps", str(steps), "--save-every", str(SAVED)]
    return start_ranks(local, workers, ["examples/resume.py", *given, "--optimizer", optimizer, "--job", job])


def losses_of(texts: Sequence[str], workers: int) -> np.ndarray:
    by_rank = [[float(loss) for loss in re.findall(r"^step \d+ rank \d+ loss (\S+)$", text, re.M)] for text in texts]
    assert len(by_rank) == workers and len({len(losses) for losses in by_rank}) == 1, texts
    return np.stack(by_rank, axis=1)


def batch(rank: int, step: int) -> tuple[Tensor, Tensor]:
    """As of the example."""
    points = torch.randn(32, 16, generator=torch.Generator().manual_seed(1000 * rank + step))
    return points, points[:, :4].argmax(dim=1)


def reference(folder: Path, workers: int, optimizer: str) -> np.ndarray:
    """The losses from the checkpoint on, as ``run``, if each of the workers begins with its parameters and the mean of
    its moments: a training in one process, that adds up nothing but takes the mean of the updates."""
    there = folder / f"step-{SAVED:08d}"
    states = [torch.load(file) for file in sorted(there.glob("optimizer-*.pt"))]
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
    model.load_state_dict(torch.load(there / "model.pt")["model"])
    replicas = [deepcopy(model) for _ in range(workers)]
    owns: list[Optimizer] = [
        AdamW(each.parameters(), lr=3e-3) if optimizer == "adamw" else SGD(each.parameters(), lr=0.1, momentum=0.9)
        for each in replicas
    ]
    moments = {"adamw": ("exp_avg", "exp_avg_sq"), "sgd": ("momentum_buffer",)}[optimizer]
    for own in owns:
        own.load_state_dict(deepcopy(states[0]))
        for index, state in enumerate(own.state.values()):
            for name in moments:
                state[name] = torch.stack([each["state"][index][name] for each in states]).mean(dim=0)
    losses = []
    for step in range(SAVED, ALL):
        losses.append(
            [one_step(*each, *batch(rank, step)) for rank, each in enumerate(zip(replicas, owns, strict=True))]
        )
        mean = torch.stack([nn.utils.parameters_to_vector(each.parameters()) for each in replicas]).mean(dim=0).detach()
        for each in replicas:
            nn.utils.vector_to_parameters(mean.clone(), each.parameters())
    return np.array(losses)


def one_step(model: nn.Module, own: Optimizer, points: Tensor, labels: Tensor) -> float:
    own.zero_grad()
    loss = nn.functional.cross_entropy(model(points), labels)
    loss.backward()  # type: ignore[no-untyped-call]
    own.step()
    return loss.item()


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_resumed_training_continues_as_if_uninterrupted(local: Local, tmp_path: Path, optimizer: str) -> None:
    """In a job of the same name, and in one of another name."""
    whole = run(local, tmp_path / "whole", 4, ALL, optimizer)
    first = run(local, tmp_path / "parts", 4, SAVED, optimizer)
    np.testing.assert_allclose(first, whole[:SAVED], rtol=0, atol=NEAR)
    for job in ("resume", "another"):
        rest = run(local, tmp_path / "parts", 4, ALL, optimizer, job)
        np.testing.assert_allclose(rest, whole[SAVED:], rtol=0, atol=NEAR)
        remove_after(tmp_path / "parts", SAVED)
    assert whole[-5:].mean() < 0.8 * whole[:5].mean(), "it learns nothing"


def remove_after(folder: Path, step: int) -> None:
    for there in folder.glob("step-*"):
        if int(there.name.rpartition("-")[2]) > step:
            for file in there.iterdir():
                file.unlink()
            there.rmdir()


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
@pytest.mark.parametrize("workers", [2, 5])
def test_resume_with_another_number_of_workers_uses_mean_moments(
    local: Local, tmp_path: Path, workers: int, optimizer: str
) -> None:
    run(local, tmp_path, 4, SAVED, optimizer)
    rest = run(local, tmp_path, workers, ALL, optimizer)
    np.testing.assert_allclose(rest, reference(tmp_path, workers, optimizer), rtol=0, atol=NEAR)
    saved = tmp_path / f"step-{ALL:08d}"
    assert len(list(saved.glob(f"optimizer-*-of-{workers}.pt"))) == workers


def test_training_ended_by_sigterm_resumes_at_once(local: Local, tmp_path: Path) -> None:
    """Its workers leave, so the job is over: it does not refuse processes that begin with a checkpoint."""
    workers = started(local, tmp_path, 3, 10**6, "adamw", "ended")
    until((tmp_path / f"step-{2 * SAVED:08d}" / "model.pt").exists, "a checkpoint")
    for worker in workers:
        worker.send_signal(signal.SIGTERM)
    outputs(workers, expect=-signal.SIGTERM)
    steps = max(int(there.name.rpartition("-")[2]) for there in tmp_path.glob("step-*")) + SAVED
    assert len(run(local, tmp_path, 3, steps, "adamw", "ended")) <= 2 * SAVED


class TestNewcomer:
    """A process with a checkpoint joins the job while it runs."""

    @pytest.fixture(autouse=True)
    def controller(self, local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(CONTROLLER, local.client.url)

    def make(self, model: nn.Module, job: str, **more: Any) -> DistributedOptimizer:
        given = {"workers": 1, "places": 2, "strategy": "asp", **more}
        return DistributedOptimizer(SGD(model.parameters(), lr=0.05), job=job, **given)

    @pytest.mark.parametrize("before", [True, False], ids=["loaded before", "loaded after"])
    def test_gets_the_jobs_parameters(self, before: bool, caplog: pytest.LogCaptureFixture) -> None:
        """Whether it loads the checkpoint before or after it makes its optimizer."""
        model, other = network(), network()
        optimizer = self.make(model, f"newcomer {before}")
        with optimizer:
            train(model, optimizer, range(3))
            saved, start = deepcopy(model.state_dict()), optimizer.start.clone()
            train(model, optimizer, range(3, 10))
            if before:
                other.load_state_dict(saved)
            with self.make(other, f"newcomer {before}", start=start if before else None) as newcomer:
                if not before:
                    other.load_state_dict(saved)
                assert torch.equal(newcomer.start, start)
                loss_of(other, 10).backward()  # type: ignore[no-untyped-call]
                newcomer.step()
                newcomer._abandon()
            train(model, optimizer, range(11, 12))
        sent = optimizer.sum_of_updates_sent + newcomer.sum_of_updates_sent
        assert torch.equal(optimizer.sum_of_updates_read, sent)
        # The checkpoint does not count as an update: that would be more than a step.
        step = 0.05 * max(p.grad.abs().max().item() for p in other.parameters() if p.grad is not None)
        assert newcomer.sum_of_updates_sent.abs().max().item() * optimizer.unit < 2 * step
        assert ("its parameters replace those that were loaded" in caplog.text) != before

    def test_with_a_start_of_another_length_is_refused(self) -> None:
        model = network()
        with self.make(model, "length") as optimizer:
            train(model, optimizer, range(1))
            values = optimizer.start.numel()
            with pytest.raises(SereneError, match=rf"start has the shape \[3\]: expected \[{values}\]"):
                self.make(network(), "length", start=torch.zeros(3))


class TestMeanState:
    def test_is_the_mean_of_floating_point_tensors(self) -> None:
        states = []
        for seed in range(3):
            torch.manual_seed(seed)
            parameter = nn.Parameter(torch.randn(4))
            own = AdamW([parameter], lr=0.1 * (seed + 1))
            for _ in range(2):
                parameter.grad = torch.randn(4)
                own.step()
            states.append(own.state_dict())
        mean = mean_state(states)
        for name in ("exp_avg", "exp_avg_sq", "step"):
            expected = torch.stack([state["state"][0][name] for state in states]).mean(dim=0)
            torch.testing.assert_close(mean["state"][0][name], expected)
        assert mean["param_groups"] == states[0]["param_groups"]

    def test_refuses_states_of_other_optimizers(self) -> None:
        parameter = nn.Parameter(torch.ones(2))
        parameter.grad = torch.ones(2)
        sgd, adam = SGD([parameter], lr=0.1, momentum=0.9), AdamW([parameter])
        sgd.step()
        adam.step()
        with pytest.raises(SereneError, match=r"the workers' states differ in state\[0\]: expected those of one"):
            mean_state([sgd.state_dict(), adam.state_dict()])
        with pytest.raises(SereneError, match="states is empty: expected one worker's"):
            mean_state([])
        for wrong in (sgd.state_dict(), iter([sgd.state_dict()])):
            with pytest.raises(SereneError, match=r"states is a \w+: expected a list of workers' state_dict\(\)"):
                mean_state(wrong)  # type: ignore[arg-type]
        with pytest.raises(SereneError, match="states has something else than an optimizer's state_dict"):
            mean_state([sgd.state_dict(), {"model": {}}])
