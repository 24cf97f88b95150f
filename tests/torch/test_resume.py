"""Shared training that resumes from a checkpoint: with the same number of workers as if it had not been interrupted;
with another number as a training that begins with those parameters and the mean of the moments."""

from __future__ import annotations

import io
import re
import shutil
import signal
import subprocess
import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cache
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
from serene.torch.replica import Replica
from tests.controller.processes import until
from tests.torch.local import Local, outputs, start_ranks
from tests.torch.small import loss_of, network, residual_of, train

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


Uninterrupted = Callable[[str], tuple[Path, np.ndarray]]


@pytest.fixture(scope="module")
def uninterrupted(local: Local, tmp_path_factory: pytest.TempPathFactory) -> Uninterrupted:
    """Trains four workers by an optimizer, once. Returns the folder of its checkpoints, and its losses."""

    @cache
    def trained(optimizer: str) -> tuple[Path, np.ndarray]:
        folder = tmp_path_factory.mktemp(optimizer)
        return folder, run(local, folder, 4, ALL, optimizer)

    return trained


def saved_at(step: int, of: Path, folder: Path) -> Path:
    """The folder, with one of the checkpoints: what a training has left that ended after this step."""
    name = f"step-{step:08d}"
    shutil.copytree(of / name, folder / name)
    return folder


@pytest.mark.parametrize(("optimizer", "job"), [("adamw", "resume"), ("sgd", "another")])
def test_resumed_training_continues_as_if_uninterrupted(
    local: Local, tmp_path: Path, uninterrupted: Uninterrupted, optimizer: str, job: str
) -> None:
    """In a job of the same name, and in one of another name."""
    folder, whole = uninterrupted(optimizer)
    rest = run(local, saved_at(SAVED, folder, tmp_path), 4, ALL, optimizer, job)
    np.testing.assert_allclose(rest, whole[SAVED:], rtol=0, atol=NEAR)
    assert whole[-5:].mean() < 0.8 * whole[:5].mean(), "it learns nothing"


@pytest.mark.parametrize(("optimizer", "workers"), [("adamw", 5), ("sgd", 2)])
def test_resume_with_another_number_of_workers_uses_mean_moments(
    local: Local, tmp_path: Path, uninterrupted: Uninterrupted, workers: int, optimizer: str
) -> None:
    saved_at(SAVED, uninterrupted(optimizer)[0], tmp_path)
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

    def test_sends_its_first_update_if_the_job_began_meanwhile(self) -> None:
        """It has made its optimizer before, and with it a step from the same start."""
        parameters = [nn.Parameter(torch.zeros(2)) for _ in range(2)]
        given: dict[str, Any] = {"job": "meanwhile", "workers": 1, "places": 2, "strategy": "asp", "limit": 64.0}
        optimizers = [DistributedOptimizer(SGD([each], lr=1.0), **given) for each in parameters]
        for parameter, optimizer in zip(parameters, optimizers, strict=True):
            parameter.grad = torch.tensor([-1.0, 2.0])
            optimizer.step()
        first, newcomer = optimizers
        assert newcomer.workers == 2 and parameters[1].tolist() == [1.5, -3.0]
        newcomer._abandon()
        first.close()
        assert parameters[0].tolist() == [1.5, -3.0]


class TestResidual:
    """What did not fit or was rounded off goes with the next update, also after a checkpoint."""

    @pytest.fixture(autouse=True)
    def controller(self, local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(CONTROLLER, local.client.url)

    def steps(
        self, job: str, rate: float, steps: int, saved: Any = None, wrapped: bool = True, **given: Any
    ) -> tuple[nn.Parameter, Any]:
        """A parameter after these steps, and its checkpoint. wrapped: whether the state is loaded when the optimizer
        is wrapped already."""
        parameter = nn.Parameter(torch.zeros(2) if saved is None else saved[0].clone())
        own = SGD([parameter], lr=rate)
        if saved is not None and not wrapped:
            own.load_state_dict(saved[1])
        with DistributedOptimizer(own, job=job, workers=1, **given) as optimizer:
            if saved is not None and wrapped:
                optimizer.load_state_dict(saved[1])
            own.param_groups[0]["lr"] = rate
            parameter.grad = torch.tensor([-1.0, 2.0])
            for _ in range(steps):
                optimizer.step()
        buffer = io.BytesIO()
        torch.save((parameter.detach(), optimizer.state_dict()), buffer)
        buffer.seek(0)
        return parameter, torch.load(buffer)

    @pytest.mark.parametrize("wrapped", [True, False], ids=["loaded after", "loaded before"])
    def test_updates_below_a_unit_add_up_over_checkpoints(self, wrapped: bool) -> None:
        """Of a tenth of a unit, with a checkpoint after each step."""
        limit = 2.0**20  # a unit is 2^-10
        whole, _ = self.steps("whole", 1e-4, 12, limit=limit)
        saved = None
        for part in range(12):
            parameter, saved = self.steps(f"part {part} {wrapped}", 1e-4, 1, saved, wrapped, limit=limit)
        assert parameter.tolist() == whole.tolist() == [2**-10, -(2**-9)]

    def test_clipped_values_follow_in_the_next_job(self) -> None:
        """Its unit follows from them, too: the next job has room for them."""
        with pytest.warns(RuntimeWarning, match="update values so far were too large"):
            parameter, saved = self.steps("clips", 30.0, 2, limit=4.0)
        assert parameter.tolist() == [1.0, -1.0]
        parameter, saved = self.steps("continues", 0.0, 1, saved)
        assert parameter.tolist() == [60.0, -120.0]
        assert not any(part.any() for part in saved[1]["param_groups"][0]["residual"])

    def test_of_an_older_checkpoint_is_not_sent_to_a_running_job(self, caplog: pytest.LogCaptureFixture) -> None:
        """The job's sum may have it already."""
        _, saved = self.steps("earlier", 1e-4, 1, limit=2.0**20)
        given: dict[str, Any] = {"job": "runs", "workers": 1, "places": 2, "strategy": "asp", "limit": 2.0**20}
        one, two = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))
        with DistributedOptimizer(SGD([one], lr=1.0), **given) as optimizer:
            one.grad = torch.ones(2)
            optimizer.step()
            own = SGD([two], lr=1e-4)
            own.load_state_dict(saved[1])
            newcomer = DistributedOptimizer(own, **given)
            assert "the checkpoint's residual is not used: the job runs" in caplog.text
            assert "residual" not in own.param_groups[0] and not residual_of(newcomer._begun).any()
            newcomer._abandon()

    def test_of_a_parameter_that_is_frozen_now_is_lost_with_a_warning(self, caplog: pytest.LogCaptureFixture) -> None:
        saved = self.steps("both", 1e-4, 1, limit=2.0**20)[1][1]
        frozen, trained = nn.Parameter(torch.zeros(2), requires_grad=False), nn.Parameter(torch.zeros(2))
        own = SGD([frozen, trained], lr=0.0)
        (group,) = saved["param_groups"]
        saved["param_groups"] = [{**group, "params": [0, 1], "residual": [*group["residual"], None]}]
        own.load_state_dict(saved)
        trained.grad = torch.zeros(2)
        with DistributedOptimizer(own, job="frozen", workers=1, limit=2.0**20) as optimizer:
            optimizer.step()
        assert "the checkpoint's residual is not used: parameters are frozen now" in caplog.text

    def test_state_between_two_exchanges_is_saved_with_a_warning(self) -> None:
        model = network()
        with DistributedOptimizer(SGD(model.parameters(), lr=0.1), job="between", workers=1, every=2) as optimizer:
            train(model, optimizer, range(1))
            with pytest.warns(RuntimeWarning, match="the state is saved between two exchanges of job 'between'"):
                optimizer.state_dict()
            train(model, optimizer, range(1, 2))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                optimizer.state_dict()

    def test_state_after_an_interrupt_is_saved_with_a_warning(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its residual lacks a contribution that the parameters do not show yet, also if the update itself is zero."""
        parameter = nn.Parameter(torch.zeros(1))
        own = SGD([parameter], lr=0.0)
        own.param_groups[0]["residual"] = [torch.full((1,), 3.0, dtype=torch.float64)]
        with DistributedOptimizer(own, job="interrupted", workers=1, limit=64.0) as optimizer:
            parameter.grad = torch.ones(1)

            def interrupted(*_: Any, **__: Any) -> None:
                raise KeyboardInterrupt

            with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
                patched.setattr(Replica, "take", interrupted)
                optimizer.step()
            with pytest.warns(RuntimeWarning, match="the state is saved between two exchanges of job 'interrupted'"):
                optimizer.state_dict()
        assert parameter.item() == 3.0


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

    def test_has_the_mean_residual_of_each_parameter(self) -> None:
        """So any number of workers send all of it. A frozen parameter has none."""
        groups = [[{"params": [0, 1], "residual": [torch.full((2,), value), None]}] for value in (1.0, 2.0, 6.0)]
        (mean,) = mean_state([{"state": {}, "param_groups": group} for group in groups])["param_groups"]
        assert mean["residual"][0].tolist() == [3.0, 3.0] and mean["residual"][1] is None
        assert mean["params"] == [0, 1]

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
        with pytest.raises(SereneError, match="states has an item that is not an optimizer's state_dict"):
            mean_state([sgd.state_dict(), {"model": {}}])
