"""Vectors in parts, whose switch loses its state in the middle of an iteration: each contribution counts once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from serene.client import Client, FrameTransport, Session
from serene.client.parts import Parts
from serene.client.updates import PartUpdate
from serene.controller.http.client import ControllerClient
from serene.errors import SereneError
from serene.strategy import ASP, BSP, Strategy
from serene.wire import Op, headers_of
from tests.controller.processes import ControllerProcess, SwitchProcess, until

LANES, WORKERS, PATIENCE_S = 320, 3, 60
SLOTS = {0: 2, 2: 1, 3: 3}  # of each part, by the first
VALUES = 6 * LANES
opened: list[Member] = []  # by the test that runs


class DeafTransport(FrameTransport):
    """Loses what the switch answers to contributions, while it is told to: deaf, all of it; deaf_after, what comes in a
    later session than that one after the vote. late: answers wait for the next WELCOME, and come together with it."""

    deaf = late = False
    deaf_after = 1 << 32
    returns = 0  # restored sums that it has not heard

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._delayed: list[tuple[np.ndarray, np.ndarray]] = []

    def receive(self, timeout_s: float) -> tuple[np.ndarray, np.ndarray]:
        payloads, lengths = super().receive(timeout_s)
        if not len(payloads):
            return payloads, lengths
        answers = payloads[:, 1] == Op.ANSWER
        if self.late:
            self._delayed.append((payloads[answers], lengths[answers]))
            payloads, lengths = payloads[~answers], lengths[~answers]
            if not (payloads[:, 1] == Op.WELCOME).any() or not sum(len(each) for each, _ in self._delayed):
                return payloads, lengths
            self.late, together = False, [*self._delayed, (payloads, lengths)]
            return np.concatenate([each for each, _ in together]), np.concatenate([each for _, each in together])
        headers = headers_of(payloads)
        returned = answers & (headers["session"] > self.deaf_after) & (headers["total"] > WORKERS)
        self.returns += int(np.count_nonzero(returned))
        heard = ~(answers & self.deaf | returned)
        return payloads[heard], lengths[heard]

    def link(self, payload_bytes: int) -> None:  # type: ignore[override]
        """Python's path, which receives here."""
        return


class Member:
    """A worker that contributes its id + 1, times a part's own weight. sums: what it has read, by slot."""

    def __init__(self, switch: SwitchProcess, worker: int) -> None:
        self.transport = DeafTransport(worker, local=switch.end(worker + 1).detach())
        self.worker = worker
        self.session = Session(Client(self.transport, 0, worker, VALUES, silence_s=0.4), join_timeout_s=PATIENCE_S)
        self.sums = np.zeros(sum(SLOTS.values()))

    def join(self) -> None:
        self.session.join()
        self.parts = Parts(self.session)

    def submit(self, *firsts: int) -> list[tuple[int, Future[PartUpdate]]]:
        return [
            (first, self.parts.submit(first, np.full(SLOTS[first] * LANES - 5, (self.worker + 1) * (first + 1) / 4)))
            for first in firsts
        ]

    def take(self, submitted: list[tuple[int, Future[PartUpdate]]]) -> None:
        for first, result in submitted:
            delta = result.result(PATIENCE_S).delta
            assert all((slot == slot[0]).all() for slot in np.split(delta, range(LANES, len(delta), LANES)))
            self.sums[first : first + SLOTS[first]] += delta[::LANES]

    def close(self) -> None:
        self.parts.close()
        self.session.client.close()


@pytest.fixture
def client(controller: ControllerProcess) -> Iterator[ControllerClient]:
    yield controller.client
    while opened:
        opened.pop().close()
    for each in controller.client.jobs():
        controller.client.delete_job(each.job)


def job(switch: SwitchProcess, client: ControllerClient, strategy: Strategy | None = None) -> list[Member]:
    client.create_job(WORKERS, strategy or BSP())
    members = [Member(switch, worker) for worker in range(WORKERS)]
    opened.extend(members)
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(lambda member: member.join(), members))
    return members


WEIGHTS = np.repeat([first + 1 for first in SLOTS], list(SLOTS.values()))


def all_hold(members: list[Member], iterations: int) -> bool:
    return all((member.sums == iterations * 6 * WEIGHTS / 4).all() for member in members)


def step(members: list[Member], *firsts: int) -> None:
    """All contribute to these parts, and read."""
    submitted = [member.submit(*(firsts or SLOTS)) for member in members]
    for member, parts in zip(members, submitted, strict=True):
        member.take(parts)


@pytest.mark.parametrize("when", ["between iterations", "some parts are answered", "parts are under way"])
def test_the_switch_restarts(switch: SwitchProcess, client: ControllerClient, when: str) -> None:
    """Twice, one after the other."""
    members = job(switch, client)
    step(members)
    for restarts in (1, 2):
        if when == "between iterations":
            switch.restart()
            step(members)
        elif when == "some parts are answered":
            step(members, 3, 0)
            switch.restart()
            step(members, 2)
        else:
            step(members, 3)
            early = members[0].submit(0, 2)
            switch.restart()
            late = [member.submit(0, 2) for member in members[1:]]
            for member, parts in zip(members, [early, *late], strict=True):
                member.take(parts)
        assert all_hold(members, 1 + restarts)
        assert [member.session.sessions_lost for member in members] == [restarts] * WORKERS
        assert [member.session.iteration for member in members] == [1 + restarts] * WORKERS
    step(members)
    assert all_hold(members, 4)
    assert {(member.session.contributions_lost, member.session.iterations_repeated) for member in members} == {(0, 0)}


@pytest.mark.parametrize("ahead", ["at rest", "in the next iteration"])
def test_what_only_some_have_read_is_not_contributed_again(
    switch: SwitchProcess, client: ControllerClient, ahead: str
) -> None:
    """Worker 2 lacks the answers to some of its parts when the switch is restarted; the others have all of theirs."""
    members = job(switch, client)
    step(members)
    step(members, 2)
    members[2].transport.deaf = True
    submitted = [member.submit(0, 3) for member in members]
    for member, parts in zip(members[:2], submitted[:2], strict=True):
        member.take(parts)
    early = [member.submit(2) for member in members[:2]] if ahead == "in the next iteration" else [[], []]
    switch.restart()
    members[2].transport.deaf = False
    members[2].take(submitted[2])
    assert all_hold(members, 2)
    rest = [
        member.submit(*[first for first in SLOTS if first not in dict(parts)])
        for member, parts in zip(members, [*early, []], strict=True)
    ]
    for member, first, later in zip(members, [*early, []], rest, strict=True):
        member.take([*first, *later])
    assert all_hold(members, 3)
    assert [member.session.iteration for member in members] == [3] * WORKERS
    assert {(member.session.contributions_lost, member.session.iterations_repeated) for member in members} == {(0, 0)}


@pytest.mark.parametrize("read", ["by two workers", "by nobody"])
def test_the_switch_restarts_when_only_some_have_read_the_restored_sum(
    switch: SwitchProcess, client: ControllerClient, read: str
) -> None:
    """Those vote in other numbers than worker 2, which has read the vote alone. What was under way at the first restart
    has been read by two of them, who are at rest, or by nobody, and they contribute it again."""
    members = job(switch, client)
    for _ in range(5):
        step(members)
    deaf = members[2:] if read == "by two workers" else members
    for member in deaf:
        member.transport.deaf = True
    submitted = [member.submit(*SLOTS) for member in members]
    if read == "by two workers":
        for member, parts in zip(members[:2], submitted[:2], strict=True):
            member.take(parts)
    first = members[0].session.client.membership.session
    members[2].transport.deaf_after = first
    switch.restart()
    for member in members:
        member.transport.deaf = False
    clients = [member.session.client for member in members]
    until(
        lambda: members[2].transport.returns and all(each.membership.session > first for each in clients)
        and all(each._caught_up for each in clients[:2]),
        "two have read the restored sum, and one has not",
    )  # fmt: skip
    second = clients[0].membership.session
    switch.restart()
    until(lambda: all(each.membership.session > second for each in clients[:2]), "the next session")
    members[2].transport.deaf_after = 1 << 32
    for member, parts in zip(deaf, submitted[-len(deaf) :], strict=True):
        member.take(parts)
    assert all_hold(members, 6)
    step(members)
    assert all_hold(members, 7)
    assert [member.session.iteration for member in members] == [7] * WORKERS
    assert {(member.session.contributions_lost, member.session.iterations_repeated) for member in members} == {(0, 0)}


def test_the_last_answers_come_together_with_the_next_welcome(switch: SwitchProcess, client: ControllerClient) -> None:
    """As to a process that was stopped meanwhile: what is answered is not contributed again."""
    members = job(switch, client)
    step(members)
    members[2].transport.late = True
    submitted = [member.submit(*SLOTS) for member in members]
    for member, parts in zip(members[:2], submitted[:2], strict=True):
        member.take(parts)
    until(lambda: sum(len(each) for each, _ in members[2].transport._delayed) >= len(WEIGHTS), "all are answered")
    switch.restart()
    members[2].take(submitted[2])
    assert all_hold(members, 2)
    step(members)
    assert all_hold(members, 3)
    assert [member.session.iteration for member in members] == [3] * WORKERS


def test_under_asp_at_most_the_iteration_under_way_is_repeated(switch: SwitchProcess, client: ControllerClient) -> None:
    """And what is lost is counted."""
    members = job(switch, client, ASP())
    for _ in range(3):
        step(members)
    step(members, 3, 0)
    switch.restart()
    step(members, 2)
    for _ in range(2):
        step(members)
    for member in members:
        member.parts.close()
        member.sums += member.session.client.pull().delta[::LANES]
        repeated = member.sums * 4 / WEIGHTS - 6 * 6
        assert (repeated >= -3 * member.session.contributions_lost).all() and (repeated <= 6).all()
        assert member.session.iterations_repeated <= 1


def test_a_slot_that_was_left_out_is_told(switch: SwitchProcess, client: ControllerClient) -> None:
    """Then there are no sums of whole iterations, and nothing is restored wrongly."""
    members = job(switch, client)
    for _ in range(2):
        step(members, 0, 3)
    switch.restart()
    for parts in [member.submit(0) for member in members]:
        with pytest.raises(SereneError, match="not every slot was contributed in every iteration"):
            parts[0][1].result(PATIENCE_S)


def test_a_job_that_is_deleted_fails_what_comes_after(switch: SwitchProcess, client: ControllerClient) -> None:
    """Also when nothing is under way; and each part that is submitted then."""
    members = job(switch, client)
    step(members)
    client.delete_job(0)
    until(lambda: not members[0].parts._thread.is_alive(), "it has noticed")
    for _ in range(2):
        with pytest.raises(SereneError, match="job 0"):
            members[0].submit(0)[0][1].result(PATIENCE_S)
