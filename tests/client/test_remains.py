"""What a client keeps of a lost session, if the session is lost during a join, a vote or a read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from serene.client import Client, SessionLost
from serene.client.session.restoration import ALL, Remains, count
from serene.errors import SereneError
from serene.strategy import BSP
from serene.wire import HEADER, Op
from tests.client.answers import VALUES
from tests.client.rejoining import ONES, Controller, begin, client
from tests.dataplane.conftest import EmbeddedDataPlane
from tests.support.in_process import InProcess


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


def test_rejoin_of_recreated_job_has_nothing_to_catch_up(
    plane: EmbeddedDataPlane, wire: InProcess, worker: Client
) -> None:
    worker.exchange(ONES)
    Controller(plane, wire)
    worker.join()
    begin(plane, 8, lost_sessions=0)
    with pytest.raises(SessionLost):
        worker.catch_up()
    worker.join()
    assert worker.catch_up() is None
    assert (worker.exchange(ONES).delta == 1).all()


def test_session_lost_unnoticed_is_restored_after_rejoin(
    plane: EmbeddedDataPlane, wire: InProcess, worker: Client
) -> None:
    """The worker joins again, and is welcomed to the next session."""
    worker.exchange(ONES)
    begin(plane, 8)
    controller = Controller(plane, wire)
    controller.epoch, controller.session = 0, 8
    worker.join()
    caught_up = worker.catch_up()
    assert caught_up is not None and caught_up.restored is not None and not caught_up.delta.any()
    assert (worker.protocol.held_values.reshape(-1)[:VALUES] == 1 << 20).all()


@pytest.mark.parametrize("noticed", [True, False])
def test_session_lost_before_vote_keeps_earlier_held_values(
    plane: EmbeddedDataPlane, noticed: bool, wire: InProcess, worker: Client
) -> None:
    worker.exchange(ONES)
    begin(plane, 8)
    with pytest.raises(SessionLost):
        worker.pull()
    worker.join()
    begin(plane, 9, lost_sessions=2)
    if noticed:
        with pytest.raises(SessionLost):
            worker.catch_up()
    else:
        controller = Controller(plane, wire)
        controller.epoch, controller.session = 0, 9
    assert worker.join().session == 9
    caught_up = worker.catch_up()
    assert caught_up is not None and not caught_up.delta.any()
    assert (worker.protocol.held_values.reshape(-1)[:VALUES] == 1 << 20).all()


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


def test_voting_rounds_of_a_lost_session_are_no_contributions(plane: EmbeddedDataPlane) -> None:
    """Its two rounds in that session are not counted as lost contributions."""
    wire = Before(plane)
    worker = client(wire)
    worker.join()
    worker.exchange(ONES)
    begin(plane, 8)
    with pytest.raises(SessionLost):
        worker.pull()
    wire.seq, wire.session, wire.then = 2, 8, lambda: begin(plane, 9, lost_sessions=2)
    worker.join()
    with pytest.raises(SessionLost):
        worker.catch_up()
    worker.join()
    wire.sent.clear()
    worker.catch_up()
    ballot = next(payload for payload in wire.sent if payload[1] == Op.PUSH)
    vote = count(np.frombuffer(ballot, ">u4", offset=HEADER.itemsize).reshape(1, -1))[0]
    assert (vote.session, vote.voted, vote.finished, vote.held, vote.under_way) == (7, 8, 1, 1, 0)


def test_epoch_change_during_restoration_vote_raises_error(plane: EmbeddedDataPlane) -> None:
    wire = Before(plane)
    worker = client(wire)
    worker.join()
    begin(plane, 8)
    with pytest.raises(SessionLost):
        worker.pull()
    wire.seq, wire.session, wire.then = 1, 8, lambda: plane.swap(BSP(), 2, session=8, workers=1)
    worker.join()
    with pytest.raises(SereneError, match="epoch 2 of job 0 began during the vote"):
        worker.catch_up()


def test_vote_over_racks_counts_all_workers_or_none(plane: EmbeddedDataPlane, wire: InProcess) -> None:
    """An answer's mask of counted workers is of the worker's own rack."""
    begin(plane, 7, lost_sessions=0)
    worker = client(wire)
    worker.join()
    worker.exchange(ONES)
    protocol = worker.protocol
    assert Remains.of(protocol).vote.counted == 1
    protocol.membership = replace(protocol.membership, racks=2)
    assert Remains.of(protocol).vote.counted == ALL
    protocol.membership = replace(protocol.membership, workers=2)
    assert Remains.of(protocol).vote.counted == 0
