"""Parts whose switch, or whose other workers, are not there: on the P4 program in process, in virtual time."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import numpy as np
import pytest

from serene.client import Client, NoAnswer, Session
from serene.client.parts import Parts, Waiting
from serene.client.updates import PartUpdate
from serene.errors import SereneError
from serene.fixedpoint import BadGradient
from serene.strategy import BSP
from serene.wire import Op
from tests.client.answers import SLOTS, VALUES, welcome
from tests.dataplane.conftest import EmbeddedDataPlane
from tests.frames import request
from tests.support.descriptors import many_open
from tests.support.in_process import InProcess

ONES = np.ones(VALUES, np.float32)
PATIENCE_S, GIVE_UP_S = 20.0, 60.0
RESULT_S = 60.0  # of real time


class Told(Waiting):
    """What it is told, and when."""

    def __init__(self, wire: InProcess) -> None:
        self.wire = wire
        self.what: list[tuple[str, float]] = []

    def begin(self) -> None:
        self.what.append(("waits", self.wire.now))

    def end(self) -> None:
        self.what.append(("goes on", self.wire.now))

    def absent(self) -> str:
        return "worker 1"


@pytest.fixture
def wire(plane: EmbeddedDataPlane) -> InProcess:
    """Of worker 0, in a job of three under BSP."""
    plane.swap(BSP(), 1)
    return InProcess(plane)


def joined(wire: InProcess) -> Session:
    session = Session(Client(wire, 0, 0, VALUES, incarnation=1, clock=wire.clock, give_up_s=GIVE_UP_S))
    session.join()
    return session


def test_a_switch_that_is_silent_is_not_taken_for_workers_that_are_missing(wire: InProcess) -> None:
    """The client gives it up in its own time."""
    session, told = joined(wire), Told(wire)
    wire.cut = True
    began = wire.now
    with Parts(session, patience_s=PATIENCE_S, waiting=told) as parts:
        part = parts.submit(0, ONES)
        with pytest.raises(NoAnswer, match=r"^nothing from the switch for 60 s, and no answer to HELLO$"):
            part.result(RESULT_S)
    assert GIVE_UP_S < wire.now - began < GIVE_UP_S + 2


def test_workers_that_are_missing_are_named_when_the_patience_is_over(wire: InProcess) -> None:
    session, told = joined(wire), Told(wire)
    began = wire.now
    with Parts(session, patience_s=PATIENCE_S, waiting=told) as parts:
        part = parts.submit(0, ONES)
        with pytest.raises(NoAnswer, match=r"^waited 20 s for worker 1$"):
            part.result(RESULT_S)
    assert PATIENCE_S < wire.now - began < PATIENCE_S + 5
    ((what, at),) = told.what
    assert what == "waits" and PATIENCE_S / 2 < at - began < PATIENCE_S / 2 + 1


def test_a_wait_that_ends_is_told(wire: InProcess) -> None:
    """The others come when this worker has said that it waits."""
    session, told = joined(wire), Told(wire)

    def others_come() -> None:
        if told.what and not came:
            came.append(wire.now)
            for worker in (1, 2):
                for slot in range(SLOTS):
                    wire.carry(worker, request(Op.PUSH, worker, values=np.full(320, 2 << 20), slot=slot))

    came: list[float] = []
    wire.meanwhile = others_come
    with Parts(session, patience_s=PATIENCE_S, waiting=told) as parts:
        assert (parts.submit(0, ONES).result(RESULT_S).delta == 5).all()
    assert [what for what, _ in told.what] == ["waits", "goes on"]


def test_a_program_may_have_many_files_open(wire: InProcess) -> None:
    session = joined(wire)
    with many_open(), Parts(session, patience_s=PATIENCE_S) as parts:
        part = parts.submit(0, ONES)
        with pytest.raises(NoAnswer, match=r"^waited 20 s for other workers$"):
            part.result(RESULT_S)


@pytest.mark.parametrize("silent_s", [0.1 * PATIENCE_S, 1.5 * PATIENCE_S])
def test_a_session_that_knows_of_none_before_it_is_an_error(wire: InProcess, silent_s: float) -> None:
    """Another job in the place of this one: its sums are not what was under way. Also where it comes later than
    the patience ends, which no silent switch tries."""
    session = joined(wire)
    began = wire.now
    wire.plane.swap(BSP(), 1, session=8)
    wire.cut = True

    def come() -> None:
        if wire.cut and wire.now > began + silent_s:
            wire.cut = False
            wire.mail = [welcome(session=8)]

    wire.meanwhile = come
    with Parts(session, patience_s=PATIENCE_S) as parts:
        part = parts.submit(0, ONES)
        with pytest.raises(SereneError, match="the job's next session knows of none before it"):
            part.result(RESULT_S)
    assert session.sessions_lost == 1


def test_a_gradient_that_is_refused_ends_all_parts(wire: InProcess) -> None:
    """Those under way, it, and those that were taken up together with it, before it and behind it."""
    session, seized = joined(wire), threading.Event()
    slot = VALUES // SLOTS

    def submit_the_others() -> None:
        """In the exchange's own thread, so that it takes up all of them at once."""
        if not seized.is_set():
            seized.set()
            bad = np.full(slot, np.nan, np.float32)
            others.extend(parts.submit(at, values) for at, values in ((1, ONES[:slot]), (2, bad), (3, ONES[:slot])))

    others: list[Future[PartUpdate]] = []
    with Parts(session) as parts:
        wire.meanwhile = submit_the_others
        first = parts.submit(0, ONES[:slot])
        assert seized.wait(RESULT_S)
        for part in (first, *others):
            with pytest.raises(BadGradient, match="the gradient is nan at index 0"):
                part.result(RESULT_S)
