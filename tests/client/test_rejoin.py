"""A worker that comes back: from the same addresses, in the same session or another, answers arriving late."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from serene.client import BadWelcome, Client, NoAnswer, Refused, Session, SessionLost
from serene.client.session.leaving import PATIENCE_S
from serene.errors import SereneError
from serene.sim.hosts import job_of
from serene.strategy import BSP
from serene.wire import ENCAPSULATION_BYTES, HEADER, Op, control_payload
from tests.client.answers import SLOTS, VALUES, after, bye, welcome
from tests.client.rejoining import ONES, Controller, begin, client, place
from tests.dataplane.conftest import EmbeddedDataPlane
from tests.frames import request
from tests.support.in_process import InProcess


def test_calls_between_rejoin_and_catch_up_are_refused(wire: InProcess, worker: Client) -> None:
    worker.exchange(ONES)
    Controller(wire)
    worker.join()
    wire.sent.clear()
    uses: list[Callable[[], object]] = [
        lambda: worker.exchange(ONES), worker.pull, lambda: worker.begin_slots(np.arange(1)),
    ]  # fmt: skip
    sent = worker.contributions_sent
    for use in uses:
        with pytest.raises(SereneError, match=r"has joined again: call catch_up\(\) first, and apply its delta"):
            use()
    assert worker.protocol.done and worker.contributions_sent == sent and wire.sent == []
    worker.catch_up()
    worker.exchange(ONES)


def test_exchange_after_a_failed_rejoin_is_refused(wire: InProcess, worker: Client) -> None:
    """The place may belong to the incarnation that asked for it, whose WELCOME was lost."""
    wire.cut = True
    with pytest.raises(NoAnswer):
        worker.join(timeout_s=1)
    wire.cut = False
    with pytest.raises(SereneError, match=r"last join\(\) has failed: call join\(\) and catch_up\(\) first"):
        worker.exchange(ONES)
    Controller(wire)
    worker.join()
    worker.catch_up()
    assert (worker.exchange(ONES).delta == 1).all()


def test_reads_that_are_kept_survive_rejoining_and_a_lost_session(wire: InProcess) -> None:
    """Also the sum that the worker restores, and that of a session in which it could not vote."""
    worker = Client(wire, 0, 0, VALUES, incarnation=1, clock=wire.clock, keeps_reads=True)
    reads = list[tuple[np.ndarray, np.ndarray]]()

    def read(expected: int) -> None:
        assert (worker.held == expected).all() and worker.held.any() == bool(expected)
        reads.append((worker.held, worker.held.copy()))

    worker.join()
    worker.exchange(np.full(VALUES, 5, np.int32))
    read(5)
    controller = Controller(wire)
    worker.join()
    read(5)
    worker.catch_up()
    read(5)
    worker.exchange(np.full(VALUES, -7, np.int32))
    read(-2)
    for epoch, restored in ((1, -2), (2, 0)):
        controller.epoch, controller.session = epoch, controller.session + 1
        begin(wire.plane, controller.session, epoch)
        with pytest.raises(SessionLost):
            worker.exchange(np.full(VALUES, 9, np.int32))
        worker.join()
        caught_up = worker.catch_up()
        assert caught_up is not None and not caught_up.delta.size
        read(restored)
    assert all((there == copy).all() for there, copy in reads)


@pytest.mark.parametrize("epoch", [1, 2])
def test_catch_up_in_new_job_ignores_reads_of_deleted_job(epoch: int, wire: InProcess, worker: Client) -> None:
    worker.exchange(ONES)
    controller = Controller(wire)
    controller.epoch, controller.session = epoch, 8
    begin(wire.plane, 8, epoch, lost_sessions=0)
    with pytest.raises(SessionLost):
        worker.exchange(ONES)
    worker.join()
    missed = worker.catch_up()
    assert missed is None if epoch == 1 else missed is not None and not missed.delta.any()
    worker.join()
    missed = worker.catch_up()
    assert missed is not None and not missed.delta.any()


def test_rejoin_after_a_lost_session_needs_a_newer_one(wire: InProcess, worker: Client) -> None:
    wire.plane.swap(BSP(), 1)
    wire.mail = [welcome(session=8)]
    with pytest.raises(SessionLost):
        worker.exchange(ONES)
    with pytest.raises(SereneError, match=r"join\(\) and catch_up\(\) first"):
        worker.exchange(ONES)
    with pytest.raises(NoAnswer):
        worker.join(timeout_s=1)  # the switch still answers for session 7
    wire.plane.swap(BSP(), 1, session=8)
    assert worker.join().session == 8


def test_rejoining_worker_accepts_refusal_of_its_last_session(wire: InProcess, worker: Client) -> None:
    """Until a WELCOME comes, its HELLO carries that session, and a refusal may carry it too."""
    wire.plane.swap(BSP(), 1)
    wire.mail = [welcome(session=8)]
    with pytest.raises(SessionLost):
        worker.exchange(ONES)
    wire.mail = [
        control_payload(Op.REFUSED, b"to whom?", session=8, incarnation=1),
        control_payload(Op.REFUSED, b"session 7 is over", session=7, incarnation=1),
    ]
    with pytest.raises(Refused, match="session 7 is over"):
        worker.join()


@pytest.mark.parametrize(
    ("sizes", "complaint"),
    [
        ({"lanes": 0}, "lanes 0"),
        ({"lanes": 2295, "slots": 1}, "lanes 2295, more than a packet has: at most 2294"),
        ({"scale": 0}, "scale 0"),
        ({"limit": 0}, "limit 0"),
        ({"slots": 0}, "expected 4 slots"),
        ({"slots": 3}, "expected 4 slots"),
        ({"slots": 2**32 - 1}, "expected 4 slots"),
        ({"lanes": 1, "slots": 4}, "expected 1280 slots"),
        ({"scale": 2**31, "limit": 2**32 - 1}, "exceeds 32 bits"),
    ],
)
def test_join_refuses_an_inconsistent_welcome(bare: EmbeddedDataPlane, sizes: dict[str, int], complaint: str) -> None:
    wire = InProcess(bare)
    wire.mail = [welcome(**sizes)]
    with pytest.raises(SereneError, match=complaint) as caught:
        client(wire).join(timeout_s=1)
    assert isinstance(caught.value, BadWelcome)


def test_waiting_join_logs_its_reason_once_after_seconds(
    bare: EmbeddedDataPlane, caplog: pytest.LogCaptureFixture
) -> None:
    for seconds, words in ((2, []), (30, ["worker 0 of job 0 waits to join: check that the controller runs and that"])):
        caplog.clear()
        with pytest.raises(NoAnswer):
            client(InProcess(bare)).join(timeout_s=seconds)
        assert len(caplog.messages) == len(words)
        assert all(text.startswith(word) for text, word in zip(caplog.messages, words, strict=True))


def test_client_uses_the_limit_of_the_job(wire: InProcess) -> None:
    wire.plane.modify(job_of(0, slots=SLOTS, vector_length=VALUES, workers=3, limit=0.5))
    worker = client(wire)
    worker.join()
    update = worker.exchange(ONES)
    assert (update.delta == 0.5).all() and update.clipped == VALUES
    assert worker.fixed_point.capacity == (2**31 - 1) // 2**19


def test_catch_up_flags_a_sum_that_may_overflow(wire: InProcess) -> None:
    """300 contributions of 8.0 exceed 32 bits."""
    for seq in range(1, 301):
        wire.carry(1, request(Op.PUSH, 1, values=np.full(320, 8 << 20), seq=seq))
    Controller(wire)
    worker = client(wire, 99)
    worker.join()
    caught_up = worker.catch_up()
    assert caught_up is not None
    assert (caught_up.contributions, caught_up.read_at_risk) == (300, True)


def test_worker_whose_leave_was_accepted_ignores_refusal(wire: InProcess, worker: Client) -> None:
    """A worker that is not scheduled for longer than a finished job's entries stay is a stranger afterwards; every BYE
    may be lost."""
    refusal, has_left = (
        control_payload(Op.REFUSED, b"job 0 has finished", session=7, incarnation=1, seq=seq) for seq in (0, 1)
    )
    wire.mail = [refusal]
    with pytest.raises(Refused, match="finished"):
        worker.leave_and_wait(timeout_s=10.0)
    for mail in ([bye(False), refusal], [has_left]):
        wire.mail, began = mail, wire.now
        assert worker.leave_and_wait(timeout_s=10.0) is False
        assert wire.now < began + 1


def test_finish_without_last_read_returns_false(wire: InProcess) -> None:
    def controller() -> None:
        """Removes a job that is over at once."""
        while (punted := wire.plane.punted()) is not None:
            op = punted[1][ENCAPSULATION_BYTES + 1]
            if op == Op.LEAVE:
                wire.mail.append(bye(True))
                wire.plane.delete(place(1))
            elif op == Op.HELLO:
                wire.mail.append(control_payload(Op.REFUSED, b"job 0 has finished", session=7, incarnation=1))

    with Session(client(wire)) as session:
        session.join()
        wire.meanwhile = controller
        assert session.finish(10.0) is False
    assert Op.PULL in wire.ops()


class Impatient(InProcess):
    """Two BYEs answer each LEAVE, at once."""

    def send(self, payloads: np.ndarray) -> None:
        super().send(payloads)
        if payloads[0, 1] == Op.LEAVE:
            assert self.ops().count(Op.LEAVE) < 100, "LEAVE after LEAVE"
            self.mail += 2 * [bye(False)]


def test_leave_is_repeated_at_a_fixed_rate(plane: EmbeddedDataPlane) -> None:
    wire = Impatient(plane)
    worker = client(wire)
    worker.join()
    assert worker.leave_and_wait(timeout_s=2.0) is False
    assert wire.ops().count(Op.LEAVE) in (10, 11)


@pytest.mark.parametrize(("session", "hellos"), [(0, [(0, 0)]), (7, [(0, 0), (1, 77)])])
def test_working_worker_answers_wait_with_one_status_hello(
    session: int, hellos: list[tuple[int, int]], wire: InProcess, worker: Client
) -> None:
    """That HELLO carries the epoch, so it does not ask for a place. The first HELLO joined."""
    wire.mail = 2 * [control_payload(Op.WAIT, seq=77, session=session, incarnation=1)]
    worker.exchange(ONES)
    headers = [np.frombuffer(payload, HEADER, 1)[0] for payload in wire.sent]
    assert [(int(each["epoch"]), int(each["seq"])) for each in headers if each["op"] == Op.HELLO] == hellos


def test_answers_that_come_with_a_newer_welcome_are_read_first(wire: InProcess, worker: Client) -> None:
    """They are the last ones of a lost session: what they add up is in the sums that this worker restores."""
    carry = wire.carry

    def last(sender: int, payload: bytes) -> None:
        carry(sender, payload)
        if wire.ops().count(Op.PUSH) == SLOTS:
            wire.mail.append(welcome(session=8))

    wire.carry = last  # type: ignore[method-assign]
    assert (worker.exchange(ONES).delta == 1).all()


def test_leaving_worker_whose_leave_was_confirmed_waits_for_the_others(wire: InProcess, worker: Client) -> None:
    """However long, though the root of a tree could not be reached before."""
    replies = [control_payload(Op.WAIT, b"the root is away", session=7, incarnation=1), bye(False)]

    def controller() -> None:
        wire.mail.append(replies.pop(0))
        if not replies:
            after(2 * PATIENCE_S, wire, lambda: wire.mail.append(bye(True)))

    wire.meanwhile = controller
    assert worker.leave_and_wait(4 * PATIENCE_S) is True


# -- what it keeps of a lost session ---------------------------------------------------------------------------------


class Before(InProcess):
    """Calls something once, before the first PUSH with this seq in this session is sent."""

    seq, session = 0, 0
    then: Callable[[], None]

    def send(self, payloads: np.ndarray) -> None:
        header = np.frombuffer(payloads[0].tobytes(), HEADER, 1)[0] if len(payloads) else None
        if header is not None and (header["op"], header["seq"], header["session"]) == (Op.PUSH, self.seq, self.session):
            self.seq = 0
            self.then()
        super().send(payloads)


@pytest.mark.parametrize("contributes", [True, False])
def test_catch_up_without_a_vote_reports_read_at_risk(
    plane: EmbeddedDataPlane, contributes: bool, worker: Client
) -> None:
    worker.exchange(ONES)
    begin(plane, 8, epoch=2)
    with pytest.raises(SessionLost):
        worker.exchange(ONES) if contributes else worker.pull()
    worker.join()
    caught_up = worker.catch_up()
    assert caught_up is not None and caught_up.restored is not None
    assert (caught_up.restored.donor, caught_up.restored.repeated) == (None, contributes)
    assert caught_up.read_at_risk


def test_epoch_change_during_restoration_vote_raises_error(plane: EmbeddedDataPlane) -> None:
    """The worker still holds the sum that it read before."""
    wire = Before(plane)
    worker = client(wire)
    worker.join()
    worker.exchange(ONES)
    begin(plane, 8)
    with pytest.raises(SessionLost):
        worker.pull()
    wire.seq, wire.session, wire.then = 1, 8, lambda: plane.swap(BSP(), 2, session=8, workers=1)
    worker.join()
    with pytest.raises(SereneError, match="epoch 2 of job 0 began during the vote"):
        worker.catch_up()
    assert worker.protocol.held_values.any() and (worker.held == 2**20).all()
