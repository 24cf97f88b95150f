"""An interrupt at each place of a step, in turn: its update counts once."""

from __future__ import annotations

from contextlib import suppress
from itertools import count as counts
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD

import serene.torch
from serene.client import Client, Refused
from serene.errors import SereneError
from serene.http import CONTROLLER
from serene.torch import DistributedOptimizer, membership, optimizer, replica, termination, work
from serene.torch.membership import Member
from serene.torch.opening import Controller
from serene.torch.replica import Named, Replica
from serene.torch.work import SwitchWork
from tests.controller.processes import until
from tests.interrupting import interrupted_at
from tests.torch.local import Local
from tests.torch.small import residual_of

FOLDER = str(Path(serene.torch.__file__).parent)  # whose lines count
LEFT_S = 30.0  # more than a worker takes to leave


def parts_of(each: Replica) -> list[Tensor]:
    return [each.contribution, residual_of(each), each._velocity, torch.tensor(each.clipped)]


def test_interrupted_contribution_is_continued_to_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several runs of values, some of which are clipped, with the momentum of ``outer``; twice interrupted."""
    monkeypatch.setattr(replica, "RUN", 5)

    def made() -> tuple[Replica, nn.Parameter]:
        torch.manual_seed(0)
        parameter = nn.Parameter(torch.randn(10))
        ours = Replica([Named("parameter", parameter)], outer=0.5)
        ours.begin(2**10, 40)
        with torch.no_grad():
            parameter.add_(0.1 * torch.randn(10))
        ours.contribute(3)  # so that there is a residual, and a momentum
        ours.take()
        ours.show()
        with torch.no_grad():
            parameter.add_(0.1 * torch.randn(10))
        return ours, parameter

    whole, _ = made()
    whole.contribute(3)
    assert whole.clipped > 1 and residual_of(whole).count_nonzero() == 10
    for count in counts(1):
        ours, _ = made()
        if not interrupted_at(count, lambda: ours.contribute(3), FOLDER, "opcode"):  # noqa: B023
            break
        interrupted_at(count // 2 + 1, lambda: ours.contribute(5 if ours.contributing else 3), FOLDER, "opcode")  # noqa: B023
        np.testing.assert_array_equal(ours.contribute(5 if ours.contributing else 3), whole.contribution.numpy())
        for one, two in zip(parts_of(ours), parts_of(whole), strict=True):
            assert torch.equal(one, two), f"interrupted at instruction {count}"
    assert count > 300


def test_residual_is_the_old_or_the_new_one_at_each_instruction() -> None:
    """A state may be saved after an interrupt. Before, float32 holds all values exactly; after, none, few or most."""
    before = torch.tensor([0.5, -2.0, 0.0, 1.0], dtype=torch.float64)
    for inexact in (0, 1, 4):
        after = before + 0.25
        after[:inexact] += 2.0**-40
        for count in counts(1):
            ours = Replica([Named("parameter", nn.Parameter(torch.zeros(4)))])
            ours._set_residual(0, before)
            interrupted = interrupted_at(count, lambda: ours._set_residual(0, after), FOLDER, "opcode")  # noqa: B023
            found = residual_of(ours)
            assert torch.equal(found, after) or (interrupted and torch.equal(found, before)), f"{inexact}, {count}"
            if not interrupted:
                break
        assert count > 20


class Counted:
    """A parameter and its optimizer, whose updates are added up where they are made. All values are exact. A unit is
    2^-14, so there are residuals."""

    def __init__(self, job: str, **settings: Any) -> None:
        self.parameter, self.made = nn.Parameter(torch.zeros(3)), torch.zeros(3, dtype=torch.float64)
        self.steps = self.changes = 0
        own = SGD([self.parameter], lr=0.5)
        own.register_step_pre_hook(self._begins)
        own.register_step_post_hook(self._ends)
        self.optimizer = DistributedOptimizer(own, job=job, workers=1, limit=2.0**16, **settings)
        self.parameter.grad = torch.ones(3)

    def _begins(self, *_: object) -> None:
        # So that updates differ, and parameters stay near zero.
        self.parameter.grad = (-1) ** self.steps * (1 + self.steps % 7 / 8) * torch.tensor([-1.0, 2.5, -(2.0**-13)])
        self._before = self.parameter.detach().double()

    def _ends(self, *_: object) -> None:
        self.made += self.parameter.detach().double() - self._before
        self.steps += 1

    def change(self) -> None:
        """Between two steps, as a program that loads parameters."""
        by = (-1) ** self.changes * torch.tensor([0.25, -(2.0**-17), 3.0])
        self.changes += 1
        self.made += by
        with torch.no_grad():
            self.parameter.add_(by)

    def check(self, where: str) -> None:
        """What was made was sent, or is in the residual; what was sent was read."""
        ours = self.optimizer._begun
        assert not ours.contributing and torch.equal(ours.sum, ours.sent), where
        assert torch.equal(ours.unit * ours.sent.double() + residual_of(ours), self.made), where
        assert torch.equal(self.parameter.detach(), (ours.unit * ours.sum.double()).float()), where


@pytest.fixture(autouse=True)
def controller(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONTROLLER, local.client.url)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("overlap", [False, True])
def test_update_interrupted_at_any_line_counts_once(overlap: bool) -> None:
    """It is sent at the next step, alone or with that step's. A second interrupt meets the sending of the first. What
    the program changes in the parameters meanwhile counts once, too."""
    training = Counted(f"each {overlap}", overlap=overlap)
    step, ours = training.optimizer.step, training.optimizer
    with ours:
        step()
        for count in counts(1, 3 if overlap else 1):
            if not interrupted_at(count, step, FOLDER):
                break
            training.change()
            interrupted_at(count // 3 + 1, step, FOLDER)
            training.change()
            step()
            if overlap:
                ours._wait()
                ours._begun.take()
                ours._begun.show()
            training.check(f"interrupted at line {count}")
    assert count > 80
    training.check("at the end")


def test_residual_that_is_loaded_after_an_interrupt_counts() -> None:
    """The interrupted exchange, which ends first, leaves it as it is."""
    residual = torch.tensor([0.5, -0.25, 0.125], dtype=torch.float64)
    training = Counted("loads")
    with training.optimizer as ours:
        ours.step()
        for count in counts(1, 5):
            if not interrupted_at(count, ours.step, FOLDER):
                break
            state = ours.optimizer.state_dict()
            state["param_groups"][0]["residual"] = [residual]
            ours.load_state_dict(state)
            begun = ours._begun
            training.made = begun.unit * (begun.sent - begun.sum).double() + training.parameter.detach() + residual
            ours.step()
            training.check(f"interrupted at line {count}")
    assert count > 50


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("place", [(Member, "exchange"), (SwitchWork, "wait")], ids=["sent", "answered"])
def test_interrupt_does_not_hide_a_failed_exchange(
    place: tuple[type, str], overlap: bool, local: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps the step from getting the exchange's work, or that work's error."""
    training = Counted(f"fails {place[1]} {overlap}", overlap=overlap)
    training.optimizer.step()
    training.optimizer._wait()
    (job,) = (job for job in local.client.jobs() if job.name == training.optimizer.job)
    local.client.delete_job(job.job)
    method = getattr(*place)

    def interrupted(*given: Any) -> None:
        with suppress(SereneError):
            method(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(*place, interrupted)
        for _ in range(2):  # with overlap the second one waits
            training.optimizer.step()
    for again in (training.optimizer.step, training.optimizer.close):
        with pytest.raises(Refused):
            again()


def test_changes_are_lost_with_a_warning_if_two_interrupts_come_at_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The second one comes while the first one's handling begins: the update counts once all the same."""
    training = Counted("at once")
    with training.optimizer as ours:
        ours.step()
        with monkeypatch.context() as patched:
            patched.setattr(Replica, "_note_interrupt", lambda _: None)
            assert interrupted_at(1, ours.step, str(work.__file__))
        ours.step()
        training.check("at the end")
    assert "two interrupts came at once" in caplog.text


@pytest.mark.timeout(600)
def test_first_step_interrupted_at_any_line_counts_once() -> None:
    """Also while it joins: then the job's unit may not be known yet. With the residual of a checkpoint."""
    residual = torch.tensor([0.5, -0.25, 0.125], dtype=torch.float64)
    for count in counts(1, 3):
        training = Counted(f"first {count}")
        training.optimizer.param_groups[0]["residual"] = [residual]
        training.made += residual
        if not interrupted_at(count, training.optimizer.step, str(optimizer.__file__)):
            break
        training.optimizer.step()
        training.optimizer.close()
        training.check(f"interrupted at line {count}")
        assert residual_of(training.optimizer._begun).abs().max() <= training.optimizer.unit / 2, f"not sent: {count}"
    training.optimizer.close()
    assert count > 50


def ports() -> int:
    """How many of the switch's ports, which are Unix sockets, this process has."""
    unix = {int(line.split()[6]) for line in Path("/proc/net/unix").read_text().splitlines()[1:]}
    held = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of the folder itself
            held += descriptor.stat().st_ino in unix
    return held


@pytest.mark.parametrize("twice", [False, True], ids=["one interrupt", "another while it leaves"])
def test_worker_interrupted_while_it_joins_frees_its_port(
    local: Local, monkeypatch: pytest.MonkeyPatch, twice: bool
) -> None:
    """In a notebook the optimizer lives on, and the next attempt needs a port."""
    leave = Client.leave

    def interrupted(client: Client, timeout_s: float) -> bool:
        leave(client, timeout_s)
        raise KeyboardInterrupt

    if twice:
        monkeypatch.setattr(Client, "leave", interrupted)
    monkeypatch.setattr(membership, "LEAVE_TIMEOUT_S", 0.2)
    before, there = ports(), list[Counted]()
    for count in counts(1):
        there.append(Counted(f"port {twice} {count}"))
        if not interrupted_at(count, there[-1].optimizer.step, str(membership.__file__)):
            break
        if not there[-1].optimizer._member:
            assert ports() == before and not termination._leave, f"interrupted at line {count}"
        there[-1].optimizer._abandon()
        for job in local.client.jobs():
            local.client.delete_job(job.job)
    there[-1].optimizer.close()
    assert count > 50


@pytest.mark.parametrize("twice", [False, True], ids=["one interrupt", "another while it waits"])
def test_worker_interrupted_while_it_leaves_has_left(monkeypatch: pytest.MonkeyPatch, twice: bool) -> None:
    """At any line: no other worker waits for it, and nothing is left to do at the program's end."""

    def interrupted(_: membership.Member) -> None:
        raise KeyboardInterrupt

    if twice:
        monkeypatch.setattr(membership.Member, "_await_departure", interrupted)
    before, controller = ports(), Controller()
    for count in counts(1):
        training = Counted(f"leaves {twice} {count}")
        training.optimizer.step()
        if not interrupted_at(count, training.optimizer.close, str(membership.__file__)):
            break
        training.optimizer.close()  # only does something if the first one had not begun
        until(lambda: not controller.find(training.optimizer.job), f"it has left: interrupted at line {count}", LEFT_S)  # noqa: B023
        until(lambda: ports() == before, f"its port is free: interrupted at line {count}", LEFT_S)
        assert not termination._leave, f"interrupted at line {count}"
    assert count > 10


def test_close_sends_an_interrupted_update() -> None:
    """Wherever its step was interrupted."""
    ended = set[int]()
    for count in counts(1, 25):
        training = Counted(f"close {count}")
        training.optimizer.step()
        if not interrupted_at(count, training.optimizer.step, FOLDER):
            break
        training.optimizer.close()
        training.check(f"interrupted at line {count}")
        ended.add(training.steps)
    training.optimizer.close()
    assert ended == {1, 2}, "before the optimizer's own step, and after it"
