"""The blocking client against the P4 program in process and in virtual time: join, exchange, silence, leave."""

from __future__ import annotations

import errno
import json
import time
from typing import Any

import numpy as np
import pytest

from serene.client import Client, NoAnswer, Refused, Session
from serene.client.session.client import WAITING_S
from serene.client.session.leaving import WARN_AFTER_S
from serene.client.transport.transport import TransportError, Trouble
from serene.entries import Entry
from serene.errors import SereneError
from serene.fixedpoint import BadGradient
from serene.sim.hosts import job_of
from serene.strategy import ASP, BSP
from serene.wire import ENCAPSULATION_BYTES, HEADER, Op, control_payload
from tests.client.answers import SLOTS, VALUES, after, bye
from tests.client.rejoining import client
from tests.dataplane.conftest import EmbeddedDataPlane
from tests.frames import request
from tests.support.in_process import InProcess

OTHERS = (1, 2)


def others_push(wire: InProcess) -> None:
    for other in OTHERS:
        for slot in range(SLOTS):
            wire.carry(other, request(Op.PUSH, other, values=np.full(320, other << 20), slot=slot))


# -- join ----------------------------------------------------------------------------------------------------


def test_join_returns_session_epoch_and_job_layout(wire: InProcess) -> None:
    joined = client(wire).join()
    assert (joined.session, joined.epoch, joined.slots, joined.lanes, joined.workers) == (7, 1, SLOTS, 320, 3)
    assert joined.scale == 2**20


def test_join_repeats_hello_until_the_job_is_complete(bare: EmbeddedDataPlane) -> None:
    wire = InProcess(bare)
    after(2, wire, lambda: bare.start_job(BSP(), slots=SLOTS))
    assert client(wire).join().session == 7
    assert 20 <= wire.ops().count(Op.HELLO) <= 23
    assert bare.punted() is not None


def test_join_without_welcome_times_out_and_names_missing_workers(bare: EmbeddedDataPlane) -> None:
    wire = InProcess(bare)
    with pytest.raises(NoAnswer, match=r"no WELCOME for worker 0 of job 0 within 3 s"):
        client(wire).join(timeout_s=3)
    wire.mail = [control_payload(Op.WAIT, b"job 0 waits for workers 2, 3", incarnation=1)]
    with pytest.raises(NoAnswer, match="job 0 waits for workers 2, 3"):
        client(wire).join(timeout_s=1)


def test_refused_join_raises_the_controllers_reason(wire: InProcess) -> None:
    wire.plane.delete(Entry("policy", {"job": 0}))
    wire.mail.append(control_payload(Op.REFUSED, b"job 0 has workers 0 to 2", incarnation=1))
    with pytest.raises(Refused, match="job 0 has workers 0 to 2"):
        client(wire).join()


def test_join_refuses_a_job_with_another_vector_length(wire: InProcess) -> None:
    with pytest.raises(Refused, match="vectors of 1280 values, not 1000"):
        client(wire, length=1000).join()


def test_exchange_before_join_is_refused(wire: InProcess) -> None:
    with pytest.raises(SereneError, match=r"call join\(\) first"):
        client(wire).exchange(np.zeros(VALUES, np.float32))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"job": 300}, "job 300: expected a whole number from 0 to 255"),
        ({"worker": -1}, "worker -1: expected a whole number from 0 to 255"),
        ({"vector_length": 0}, "vector_length 0: expected a whole number from 1 to 4294967295"),
        ({"vector_length": 10.5}, "vector_length 10.5: expected a whole number"),
    ],
)
def test_client_rejects_arguments_outside_header_field_range(
    wire: InProcess, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(SereneError, match=message):
        Client(wire, **{"job": 0, "worker": 0, "vector_length": VALUES, **given})


# -- exchange ------------------------------------------------------------------------------------------------


def test_exchange_returns_the_sum_of_all_gradients(wire: InProcess, worker: Client) -> None:
    others_push(wire)
    update = worker.exchange(np.full(VALUES, 0.5, np.float32))
    assert update.delta.dtype == np.float32 and update.delta.shape == (VALUES,)
    assert (update.delta == 3.5).all()
    assert (update.contributions, update.epoch, update.round, update.clipped) == (3, 1, 0, 0)
    assert (worker.exchange(np.full(VALUES, -1.25, np.float32)).delta == -1.25).all()
    assert (worker.pull().delta == 0).all()
    assert worker.contributions_sent == 2 * SLOTS == wire.plane.counter("contributions", 0)


def test_client_that_keeps_reads_never_overwrites_an_earlier_one(wire: InProcess) -> None:
    """So there is no difference, but a session still measures how contributions agree."""
    with Session(Client(wire, 0, 0, VALUES, incarnation=1, clock=wire.clock, keeps_reads=True)) as session:
        session.join()
        others_push(wire)
        reads = [session.client.held]
        for value in (5, -7):
            update = session.exchange(np.full(VALUES, value, np.int32))
            assert update is not None and not update.delta.size
            reads.append(session.client.held)
        assert not session.client.pull().delta.size
    for read, value in zip(reads, (0, (3 << 20) + 5, (3 << 20) - 2), strict=True):
        assert read.shape == (VALUES,) and (read == value).all()
    told = session.telemetry()
    assert (told["agreement"], told["agreement_after"]) == pytest.approx((1, -1))


def test_vector_may_end_within_its_last_slot(bare: EmbeddedDataPlane) -> None:
    bare.start_job(ASP(), slots=2)
    bare.modify(job_of(0, slots=2, vector_length=333, workers=3))
    wire = InProcess(bare)
    worker = client(wire, length=333)
    worker.join()
    gradient = np.linspace(-1, 1, 333, dtype=np.float32)
    delta = worker.exchange(gradient).delta
    assert delta.shape == (333,) and np.abs(delta - gradient).max() <= 0.5 / 2**20
    last = np.frombuffer(wire.sent[-1][HEADER.itemsize :], ">i4")
    assert last[12] == 2**20 and not last[13:].any()


def test_clipped_values_are_counted_and_limited(worker: Client) -> None:
    gradient = np.zeros(VALUES, np.float32)
    gradient[:3] = 9, -9, 8
    update = worker.exchange(gradient)
    assert update.clipped == worker.clipped_values == 2
    assert update.delta[:3].tolist() == [8, -8, 8]


@pytest.mark.parametrize("shape", [(VALUES - 1,), (VALUES, 1)])
def test_exchange_refuses_a_gradient_of_another_shape(shape: tuple[int, ...], worker: Client) -> None:
    with pytest.raises(SereneError, match=r"expected \(1280,\), as the job.s vector has"):
        worker.exchange(np.zeros(shape, np.float32))


def test_exchange_refuses_nan_and_sends_nothing(wire: InProcess, worker: Client) -> None:
    with pytest.raises(BadGradient):
        worker.exchange(np.full(VALUES, np.nan, np.float32))
    assert Op.PUSH not in wire.ops() and worker.contributions_sent == 0


def test_blocked_worker_waits_while_the_switch_answers_hello(wire: InProcess, worker: Client) -> None:
    wire.plane.swap(BSP(), 1)
    after(90, wire, lambda: others_push(wire))
    update = worker.exchange(np.zeros(VALUES, np.float32))
    assert (update.delta == 3).all()
    assert update.waiting_s == pytest.approx(90, abs=2) and update.network_s < 2
    assert wire.ops().count(Op.HELLO) > 20
    assert wire.plane.counter("contributions", 0) == SLOTS


def test_repeated_calls_do_not_keep_a_blocked_worker_from_asking(wire: InProcess, worker: Client) -> None:
    """Its HELLO that answered the first one may have been lost."""
    wire.plane.swap(BSP(), 1)
    call, end = control_payload(Op.WAIT, incarnation=1, session=7, seq=9), wire.now + 20
    wire.meanwhile = lambda: wire.mail.append(call) if wire.now < end else others_push(wire)
    worker.exchange(np.zeros(VALUES, np.float32))
    assert wire.ops().count(Op.HELLO) >= 10


# -- when things end -----------------------------------------------------------------------------------------


def test_blocked_worker_reports_an_unreachable_switch(wire: InProcess, worker: Client) -> None:
    wire.plane.swap(BSP(), 1)
    after(1, wire, wire.close)
    with pytest.raises(NoAnswer, match="the switch has sent nothing for 60 s"):
        worker.exchange(np.zeros(VALUES, np.float32))
    assert 20 <= wire.ops().count(Op.HELLO) <= 32  # one to join, then one every two seconds


def test_exchange_reports_packets_larger_than_path_mtu(wire: InProcess, worker: Client) -> None:
    """HELLO and WELCOME are small enough to pass, so without this check the worker would ask for ever."""
    wire.plane.swap(BSP(), 1)
    wire.troubled = Trouble(errno.EMSGSIZE, 1320, since=time.monotonic() - 61)
    with pytest.raises(TransportError, match="packets of 1320 bytes exceed the MTU of the path to the switch"):
        worker.exchange(np.zeros(VALUES, np.float32))


@pytest.mark.parametrize("over", [True, False])
def test_leave_is_resent_until_bye_arrives(wire: InProcess, over: bool, worker: Client) -> None:
    worker.exchange(np.zeros(VALUES, np.float32))
    wire.sent.clear()

    def goodbye() -> None:
        if wire.ops().count(Op.LEAVE) == 3:
            wire.mail.append(bye(over))

    wire.meanwhile = goodbye
    assert worker.leave(died=[5, 2]) is over
    assert wire.ops() == [Op.LEAVE] * 3
    assert json.loads(wire.sent[0][HEADER.itemsize :]) == {"contributions_sent": SLOTS, "died": [2, 5]}
    assert wire.plane.punted() is not None


@pytest.mark.parametrize("confirmed", [True, False])
def test_leaving_worker_waits_for_the_others_and_warns_if_unconfirmed(
    wire: InProcess, worker: Client, confirmed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A worker that has left may wait long for the others: nothing is wrong then."""
    began = wire.now

    def goodbye() -> None:
        over = wire.now > began + 2 * WARN_AFTER_S
        if confirmed or over:
            wire.mail.append(bye(over))

    wire.meanwhile = goodbye
    assert worker.leave_and_wait(4 * WARN_AFTER_S) is True
    assert wire.now > began + 2 * WARN_AFTER_S
    assert caplog.text.count("waits to leave") == (not confirmed)
    wire.meanwhile = lambda: None
    assert worker.leave_and_wait(1) is False


def test_left_worker_cannot_exchange_but_can_pull(worker: Client) -> None:
    worker.leave(0.5)
    with pytest.raises(SereneError, match=r"the worker has left its job: call join\(\) first"):
        worker.exchange(np.ones(VALUES, np.float32))
    assert not worker.pull().delta.any()


def test_worker_report_reaches_controller_unchanged(wire: InProcess) -> None:
    with client(wire) as worker:
        worker.join()
        worker.report({"iteration": 5, "loss": 0.25})
        punted = wire.plane.punted()
    assert punted is not None
    assert punted[0] == 1
    assert json.loads(punted[1][ENCAPSULATION_BYTES + HEADER.itemsize :]) == {"iteration": 5, "loss": 0.25}
    assert wire.cut


def test_worker_counts_as_waiting_only_after_a_while(wire: InProcess, worker: Client) -> None:
    """Until then the network may just be slow."""
    wire.plane.swap(BSP(), 1)
    began, waiting = wire.now, list[float]()
    worker.while_waiting = lambda: waiting.append(wire.now - began)
    after(3 * WAITING_S, wire, lambda: others_push(wire))
    worker.exchange(np.zeros(VALUES, np.float32))
    assert waiting and min(waiting) > WAITING_S
