"""A DistributedOptimizer with one worker does what the plain optimizer does, within a unit a step."""

from __future__ import annotations

import copy
import io
import signal
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from serene.client import Refused
from serene.errors import SereneError
from serene.http import CONTROLLER
from serene.torch import DistributedOptimizer
from tests.controller.processes import until
from tests.ports import some_port
from tests.torch.local import Local
from tests.torch.small import STEPS, loss_of, network, train

Make = Callable[[Any], Optimizer]


@pytest.fixture(autouse=True)
def controller(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONTROLLER, local.client.url)


def near(model: nn.Module, other: nn.Module, tolerance: float = 1e-4) -> None:
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=tolerance)


MAKES: list[Make] = [
    lambda parameters: SGD(parameters, lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3),
    lambda parameters: AdamW(parameters, lr=1e-3, amsgrad=True),
    lambda parameters: torch.optim.Adagrad(parameters, lr=0.02),
    lambda parameters: SGD(parameters, lr=1e-6),
    lambda parameters: SGD(parameters, lr=10.0),
]


@pytest.mark.parametrize(
    ("make", "momentum"),
    [*zip(MAKES, (0.9, 0.9, 0.0, 0.0, 0.0), strict=True)],
    ids=["sgd", "adamw", "adagrad", "1e-6", "10"],
)
def test_distributed_optimizer_matches_plain_with_one_worker(make: Make, momentum: float) -> None:
    """Within a thousandth of the distance that the parameters moved: one unit a step, whose effect the training may
    enlarge. The worker also reports what automatic strategies need."""
    plain, shared = network(), network()
    train(plain, make(plain.parameters()), range(5))
    with DistributedOptimizer(make(shared.parameters()), job="plain", workers=1) as optimizer:
        assert isinstance(optimizer, Optimizer)
        train(shared, optimizer, range(5))
        assert optimizer._member is not None
        telemetry = optimizer._member.session.telemetry()
        assert telemetry["momentum"] == momentum
        assert {"agreement", "agreement_after"} <= telemetry.keys()
    moved = max((p - q).abs().max().item() for p, q in zip(plain.parameters(), network().parameters(), strict=True))
    near(shared, plain, max(moved / 200, optimizer.unit))


def test_schedules_and_groups_with_own_rates_match_plain() -> None:
    def both(model: nn.Module) -> list[dict[str, Any]]:
        halves = list(model.parameters())
        return [{"params": halves[:2], "lr": 0.1}, {"params": halves[2:]}]

    plain, shared = network(), network()
    ordinary = SGD(both(plain), lr=0.01, momentum=0.9)
    with DistributedOptimizer(SGD(both(shared), lr=0.01, momentum=0.9), job="schedule", workers=1) as optimizer:
        schedules = [
            torch.optim.lr_scheduler.SequentialLR(
                each,
                [
                    torch.optim.lr_scheduler.LinearLR(each, 1e-3, total_iters=5),
                    torch.optim.lr_scheduler.CosineAnnealingLR(each, 15),
                ],
                [5],
            )
            for each in (ordinary, optimizer)
        ]
        for step in range(STEPS):
            train(plain, ordinary, range(step, step + 1))
            train(shared, optimizer, range(step, step + 1))
            for schedule in schedules:
                schedule.step()
        assert [group["lr"] for group in optimizer.param_groups] == [group["lr"] for group in ordinary.param_groups]
    near(shared, plain)


def test_lbfgs_closure_is_called_as_often_as_plain() -> None:
    plain, shared = network(), network()
    losses = []
    with DistributedOptimizer(torch.optim.LBFGS(shared.parameters(), max_iter=4), job="closure", workers=1) as ours:
        for model, optimizer in ((plain, torch.optim.LBFGS(plain.parameters(), max_iter=4)), (shared, ours)):

            def closure(model: nn.Module = model, optimizer: Optimizer = optimizer) -> torch.Tensor:
                optimizer.zero_grad()
                loss = loss_of(model, 0)
                loss.backward()  # type: ignore[no-untyped-call]
                return loss

            losses.append(optimizer.step(closure))
    assert float(losses[0]) == float(losses[1])
    near(shared, plain)


def test_gradient_scaler_may_skip_steps() -> None:
    plain, shared = network(), network()
    ordinary = SGD(plain.parameters(), lr=0.05)
    with DistributedOptimizer(SGD(shared.parameters(), lr=0.05), job="scaler", workers=1) as ours:
        for model, optimizer in ((plain, ordinary), (shared, ours)):
            scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120, growth_interval=3)
            for step in range(60):
                optimizer.zero_grad()
                scaler.scale(loss_of(model, step)).backward()  # type: ignore[no-untyped-call]
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
            assert scaler.get_scale() != 2.0**120, "it has skipped a step"
    assert ours.sum_of_updates_sent.any()
    near(shared, plain)


def test_checkpoints_are_exchangeable_with_the_plain_optimizer() -> None:
    """All workers may load one into a new job, also after the optimizer was made."""
    plain, shared = network(), network()
    ordinary = Adam(plain.parameters(), lr=0.01)
    train(plain, ordinary)
    with DistributedOptimizer(Adam(shared.parameters(), lr=0.01), job="saved", workers=1) as optimizer:
        train(shared, optimizer, range(10))
        kept = io.BytesIO()
        torch.save({"model": shared.state_dict(), "optimizer": optimizer.state_dict()}, kept)

    def load() -> dict[str, Any]:
        kept.seek(0)
        loaded: dict[str, Any] = torch.load(kept)
        return loaded

    resumed, continued = network(), network()
    by_plain = Adam(continued.parameters(), lr=0.5)
    continued.load_state_dict(load()["model"])
    by_plain.load_state_dict(load()["optimizer"])
    train(continued, by_plain, range(10, STEPS))
    with DistributedOptimizer(Adam(resumed.parameters(), lr=0.5), job="saved", workers=1) as optimizer:
        resumed.load_state_dict(load()["model"])
        optimizer.load_state_dict(load()["optimizer"])
        assert optimizer.param_groups[0]["lr"] == 0.01
        train(resumed, optimizer, range(10, STEPS))
    near(continued, plain)
    near(resumed, plain)


@pytest.mark.parametrize("kind", [Adam, SGD])
@pytest.mark.parametrize("before", [True, False], ids=["loaded before", "loaded after"])
@pytest.mark.parametrize("older", [True, False], ids=["older", "newer"])
def test_checkpoint_has_the_outer_momentum(kind: type[Optimizer], before: bool, older: bool) -> None:
    """It is lost neither if the state is loaded before the optimizer is wrapped nor if after. Older checkpoints have it
    in each parameter's state."""
    whole, parts = network(), network()

    def made(model: nn.Module, saved: dict[str, Any] | None = None) -> DistributedOptimizer:
        own = kind(model.parameters(), lr=0.01)  # type: ignore[call-arg]
        if saved is not None and before:
            own.load_state_dict(saved)
        return DistributedOptimizer(own, job="outer", workers=1, outer=0.7)

    with made(whole) as optimizer:
        train(whole, optimizer, range(10))
    with made(parts) as optimizer:
        train(parts, optimizer, range(5))
        saved = optimizer.state_dict()
    if older:
        (group,) = saved["param_groups"]
        del group["residual"]
        for number, part in enumerate(group.pop("outer_momentum")):
            saved["state"].setdefault(number, {})["outer_momentum"] = part.float()
    with made(parts, saved) as optimizer:
        if not before:
            optimizer.load_state_dict(saved)
        train(parts, optimizer, range(5, 10))
        assert all("outer_momentum" not in state for state in optimizer.state.values())
    assert not older or all("outer_momentum" in state for state in saved["state"].values()), "the given state stays"
    near(parts, whole)
    loaded = kind(parts.parameters(), lr=0.01)  # type: ignore[call-arg]
    loaded.load_state_dict(saved)
    train(parts, loaded, range(10, 11))


def test_optimizer_calls_registered_hooks() -> None:
    model, called = network(), list[str]()
    with DistributedOptimizer(SGD(model.parameters(), lr=0.1), job="hooks", workers=1) as optimizer:
        optimizer.register_step_pre_hook(lambda *_: called.append("before"))
        optimizer.register_step_post_hook(lambda *_: called.append("after"))
        optimizer.register_state_dict_post_hook(lambda _, saved: called.append("saved"))
        optimizer.register_load_state_dict_pre_hook(lambda *_: called.append("loads"))
        train(model, optimizer, range(2))
        optimizer.load_state_dict(optimizer.state_dict())
    assert called == ["before", "after"] * 2 + ["saved", "loads"]


def test_frozen_tied_and_unused_parameters_are_supported() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.frozen, self.one, self.unused = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 3)
            self.two, self.out = nn.Linear(8, 8), nn.Linear(8, 3)
            self.two.weight = self.one.weight
            self.frozen.requires_grad_(False)

        def forward(self, points: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.out(self.two(torch.tanh(self.one(self.frozen(points)))))
            return result

    plain, shared = Tied(), Tied()
    before = copy.deepcopy(shared.state_dict())
    train(plain, SGD(plain.parameters(), lr=0.05))
    with DistributedOptimizer(SGD(shared.parameters(), lr=0.05), job="tied", workers=1) as optimizer:
        train(shared, optimizer)
        with pytest.raises(
            SereneError, match=r"parameter 0 of group 0 \(shape \[8, 8\]\) was frozen at the first step"
        ):
            shared.frozen.requires_grad_(True)
            optimizer.step()
        shared.frozen.requires_grad_(False)
    near(shared, plain)
    for name in ("frozen.weight", "unused.weight", "unused.bias"):
        assert torch.equal(shared.state_dict()[name], before[name])


def test_optimizer_exchanges_every_n_steps_and_rest_at_close() -> None:
    """In the background too; 20 steps make two exchanges of eight steps, and `close` sends the last four."""
    plain = network()
    train(plain, SGD(plain.parameters(), lr=0.05))
    for overlap in (False, True):
        shared = network()
        ours = DistributedOptimizer(SGD(shared.parameters(), lr=0.05), job="every", workers=1, every=8, overlap=overlap)
        train(shared, ours)
        member = ours._member
        assert member is not None and ours.close()
        assert member.session.iteration == 3
        near(shared, plain)


def test_close_sends_the_steps_of_a_worker_that_has_not_exchanged_yet() -> None:
    """It has done less than ``every`` steps, so it joins in `close`, and waits for the other one."""
    models = [network(), network()]

    def run(model: nn.Module, steps: range) -> None:
        own = SGD(model.parameters(), lr=0.05)
        with DistributedOptimizer(own, job="fewer steps", workers=2, every=64, timeout_s=60.0) as optimizer:
            train(model, optimizer, steps)
        assert optimizer.close()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, models, (range(5), range(5, 10))))
    near(models[0], models[1], 0.0)


def inner_frames(error: BaseException) -> list[str]:
    """Serene's functions in the traceback that the user's program prints."""
    assert error.__cause__ is None and error.__suppress_context__
    frames = traceback.extract_tb(error.__traceback__)
    return [frame.name for frame in frames if "serene/torch/" in frame.filename]


def test_deleted_job_fails_the_next_step(local: Local) -> None:
    model = network()
    optimizer = DistributedOptimizer(SGD(model.parameters(), lr=0.1), job="deleted", workers=1)
    train(model, optimizer, range(2))
    (job,) = (job for job in local.client.jobs() if job.name == "deleted")
    local.client.delete_job(job.job)
    # A busy machine may take longer to the next step than the controller remembers a deleted job.
    with pytest.raises(Refused, match=f"job {job.job} was deleted|there is no job {job.job} ") as refused:
        train(model, optimizer, range(1))
    assert inner_frames(refused.value) == ["brief"]
    for again in (lambda: train(model, optimizer, range(1)), optimizer.close):
        with pytest.raises(Refused):
            again()
    assert not optimizer.close()  # still not all have everything


def test_update_of_an_interrupted_step_counts_once(local: Local) -> None:
    """Ctrl-C in a notebook ends a step that waits for the others; the next cells change the parameter, and continue
    the training. The change counts, too."""
    go, failed, others = threading.Event(), list[BaseException](), nn.Parameter(torch.zeros(1))

    def step(parameter: nn.Parameter, optimizer: Optimizer) -> None:
        parameter.grad = torch.full((1,), -1.0)
        optimizer.step()

    def optimizer_of(parameter: nn.Parameter) -> DistributedOptimizer:
        return DistributedOptimizer(SGD([parameter], lr=1.0), job="interrupted", workers=2, limit=64.0)

    def train_other() -> None:
        try:
            with optimizer_of(others) as optimizer:
                step(others, optimizer)
                go.wait(60)
                for _ in range(2):
                    step(others, optimizer)
        except BaseException as error:
            failed.append(error)

    def interrupt() -> None:
        def waits() -> bool:
            (job,) = (job for job in local.client.jobs() if job.name == "interrupted")
            reports = [worker.report or {} for worker in job.workers]
            return any((report.get("state"), report.get("iteration")) == ("waiting", 1) for report in reports)

        try:
            until(waits, "the step waits for the other worker")
        finally:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    other, interrupter = threading.Thread(target=train_other), threading.Thread(target=interrupt)
    parameter = nn.Parameter(torch.zeros(1))
    with optimizer_of(parameter) as optimizer:
        other.start()
        step(parameter, optimizer)
        with pytest.raises(KeyboardInterrupt):
            interrupter.start()
            step(parameter, optimizer)
        with torch.no_grad():
            parameter.add_(4.0)
        go.set()
        step(parameter, optimizer)
        assert parameter.item() == 5.0
    other.join()
    assert not failed and parameter.item() == others.item() == 5.0


def test_close_after_an_error_in_the_with_block_returns_false() -> None:
    """The worker has left without the others' last updates."""
    model = network()
    optimizer = DistributedOptimizer(SGD(model.parameters(), lr=0.1), job="fails", workers=1)
    with pytest.raises(RuntimeError, match="fails"), optimizer:
        train(model, optimizer, range(1))
        raise RuntimeError("fails")
    assert not optimizer.close()


# -- what is refused -----------------------------------------------------------------------------------------


def test_parameter_groups_can_be_added_only_before_the_first_step() -> None:
    model, more = network(), nn.Linear(2, 2)
    with DistributedOptimizer(SGD(model.parameters(), lr=0.1), job="groups", workers=1) as optimizer:
        optimizer.add_param_group({"params": [more.weight]})
        train(model, optimizer, range(1))
        with pytest.raises(SereneError, match="job 'groups' has started: add parameter groups before"):
            optimizer.add_param_group({"params": [more.bias]})
    with pytest.raises(SereneError, match="the optimizer is closed: this worker has left job 'groups'"):
        optimizer.step()
    assert optimizer.close()


def test_other_parameters_of_the_wrapped_optimizer_are_refused() -> None:
    """They would be trained here alone."""
    model, more = network(), nn.Linear(2, 2)
    wrapped = SGD(model.parameters(), lr=0.1)
    with DistributedOptimizer(wrapped, job="wrapped", workers=1) as optimizer:
        train(model, optimizer, range(1))
        (group,) = wrapped.param_groups
        for params in ([*group["params"], more.weight], [*group["params"][:-1], more.bias]):
            with pytest.raises(SereneError, match="the optimizer's parameters are not those of the first step, and"):
                wrapped.param_groups[0] = {**group, "params": params}
                optimizer.step()
        wrapped.param_groups[0] = group
        train(model, optimizer, range(1))


def test_update_that_is_not_finite_is_refused() -> None:
    """The others continue, as after any error (test_termination.py)."""
    model = network()
    bad = (
        r"^worker 0 of job 'nan': the update of parameter 0 of group 0 \(shape \[16, 8\]\) has \d+ values not finite, "
        "the first is nan: nothing was sent$"
    )
    own = SGD(model.parameters(), lr=0.1)
    with pytest.raises(SereneError, match=bad), DistributedOptimizer(own, job="nan", workers=1) as optimizer:
        train(model, optimizer, range(1))
        (loss_of(model, 1) * float("nan")).backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def one_layer(values: int) -> Optimizer:
    return SGD([nn.Parameter(torch.zeros(values))], lr=0.1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (network, "optimizer is a Sequential: expected an optimizer of torch.optim"),
        (lambda: object.__new__(DistributedOptimizer), "optimizer is a DistributedOptimizer: expected an optimizer of"),
        (lambda: one_layer(8_000_000), r"8,000,000 parameters: the switch has room for 7,340,032 \(8,192 slots of"),
    ],
    ids=["a model", "a wrapped optimizer", "too many parameters"],
)
def test_what_cannot_be_shared_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(SereneError, match=message):
        DistributedOptimizer(make(), job="job", workers=1)


@pytest.mark.parametrize("start", [[0.0], torch.zeros(1, 1), torch.zeros(1, dtype=torch.int32)])
def test_start_that_is_no_vector_of_values_is_refused(start: Any) -> None:
    """Also by a process whose job does not run, where it is unused."""
    with pytest.raises(SereneError, match=r"start is a (list|Tensor): expected a vector, `start` of another process"):
        DistributedOptimizer(one_layer(1), job="start", workers=1, start=start)


def test_optimizer_without_a_controller_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONTROLLER, f"http://127.0.0.1:{some_port()}")
    with pytest.raises(
        SereneError, match=r"^no controller at http://127.*: start one with 'serenectl up --local'"
    ) as refused:
        DistributedOptimizer(one_layer(1), job="alone", workers=1)
    assert inner_frames(refused.value) == ["brief"]


def test_optimizer_times_out_when_peers_do_not_join() -> None:
    model = network()
    optimizer = DistributedOptimizer(SGD(model.parameters(), lr=0.1), job="alone", workers=2, timeout_s=0.3)
    with pytest.raises(
        SereneError, match=r"no place in job 'alone' within 0\.3 s: 1 of 2 processes of job 'alone' are"
    ) as refused:
        train(model, optimizer, range(1))
    assert inner_frames(refused.value) == ["brief"]
    with pytest.raises(SereneError, match=r"no place in job 'alone' within 0\.3 s"):
        optimizer.close()
    assert not optimizer.close()  # it has not the others' updates


def test_values_beyond_the_limit_are_sent_later_with_a_warning() -> None:
    """The rest stays in the residual, and a warning names it."""
    parameter = nn.Parameter(torch.zeros(1))
    with DistributedOptimizer(SGD([parameter], lr=1.0), job="limit", workers=1, limit=4.0) as optimizer:
        parameter.grad = torch.full((1,), -3.0)
        with pytest.warns(
            RuntimeWarning, match="1 update values so far were too large, or would move a parameter more than"
        ) as warned:
            for _ in range(20):
                optimizer.step()
        assert parameter.item() == 4.0
        assert warned[0].filename == __file__, "where the program calls step()"
        parameter.grad = torch.full((1,), 57.0)
        optimizer.step()
        optimizer.zero_grad()
        for _ in range(20):
            optimizer.step()
        assert parameter.item() == pytest.approx(3.0)
