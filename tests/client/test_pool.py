"""Pools against the P4 program in process and in virtual time: sums, odd sizes, bad networks, and what ends them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from serene.client import Disagreement, Pool, PoolBroken
from serene.client.allreduce.pool import LAST_SEQ
from serene.errors import SereneError
from serene.experiments.correctness.virtual.switch import P4Switch
from serene.faults import Faults, PacketFaults
from serene.strategy import ASP, BSP, SSP, Quorum, Strategy
from serene.wire import ENCAPSULATION_BYTES, HEADER, Op
from tests.support.numbers import expected, same, within_bound
from tests.support.pools import PoolRun, lossy

LANES = 320


def vectors(workers: int, length: int, seed: int = 0) -> list[np.ndarray]:
    """Magnitudes that change from block to block."""
    magnitudes = np.float32(10.0) ** (np.arange(length) // 1000 % 13 - 6).astype(np.float32)
    draws = [np.random.default_rng([seed, worker]).normal(size=length) for worker in range(workers)]
    return [draw.astype(np.float32) * magnitudes for draw in draws]


# -- sums ----------------------------------------------------------------------------------------------------


def test_wait_for_a_late_worker_is_not_network_time(switch: P4Switch) -> None:
    """The wait is at the first piece, which is sent alone."""
    run = PoolRun(switch, 2, 8)

    def live(worker: int, pool: Pool) -> None:
        while worker == 1 and run.now < 30:
            run.wires[1].receive(30.0)
        pool.all_reduce(np.ones(100 * LANES, np.float32))

    run.play(live)
    assert not run.errors
    waited, late = (pool.telemetry() for pool in run.pools)
    assert waited["waiting_s"] == pytest.approx(30, abs=1) and waited["network_s"] < 1
    assert late["waiting_s"] < 1


@pytest.mark.parametrize("delay_s", [0.02, 0.045, 0.2])
def test_wait_for_a_slow_link_is_counted_as_waiting(switch: P4Switch, delay_s: float) -> None:
    """Also if the delay is shorter than the retransmission timeout, and in the tenth step."""
    run = PoolRun(switch, 3, 16, Faults(1, (PacketFaults(workers=(2,), delay_s=delay_s),)))
    steps: list[list[tuple[float, float]]] = [[], [], []]

    def live(worker: int, pool: Pool) -> None:
        for _ in range(10):
            before = pool.waiting_s, pool.network_s
            pool.all_reduce(np.ones(1000, np.float32))
            steps[worker].append((pool.waiting_s - before[0], pool.network_s - before[1]))

    run.play(live)
    assert not run.errors
    for waiting_s, exchange_s in steps[0] + steps[1]:
        assert waiting_s == pytest.approx(exchange_s, rel=0.1), steps
    assert [waiting_s for waiting_s, _ in steps[2]] == [0.0] * 10


def test_pool_stays_usable_after_a_signature_of_wrong_type(switch: P4Switch) -> None:
    run, values = PoolRun(switch, 2, 4), [np.ones(5, np.float32) for _ in range(2)]

    def live(worker: int, pool: Pool) -> None:
        with pytest.raises(TypeError):
            pool.all_reduce(values[worker], "text")  # type: ignore[arg-type]
        pool.all_reduce(values[worker], b"bytes")

    run.play(live)
    assert not run.errors
    assert all((vector == 2).all() for vector in values)


def test_pool_sends_no_pieces_for_zeros(switch: P4Switch) -> None:
    run = PoolRun(switch, 2, 8)
    results = run.all_reduce([np.full(100 * LANES, sign, np.float32) for sign in (0.0, -0.0)])
    assert not any(result.view(np.uint32).any() for result in results)
    assert run.pools[0].counts.sent <= 3


VALUES = r"expected float32\[n\], contiguous and writeable"
RESIDUAL = r"expected float64\[6\], contiguous and writeable"


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("values", np.zeros(6), VALUES),
        ("values", np.zeros((6, 1), np.float32), VALUES),
        ("values", np.zeros(12, np.float32)[::2], VALUES),
        ("values", np.zeros(6, np.int32), VALUES),
        ("residual", np.zeros(5), RESIDUAL),
        ("residual", np.zeros(6, np.float32), RESIDUAL),
        ("residual", np.zeros(12)[::2], RESIDUAL),
        ("residual", np.frombuffer(bytes(48)), RESIDUAL),
        ("lost", np.zeros(5), r"vector of lost values is float64\[5\]: expected float64\[6\]"),
    ],
)
def test_all_reduce_refuses_arrays_of_wrong_type_or_size(
    switch: P4Switch, name: str, array: np.ndarray, message: str
) -> None:
    arrays: dict[str, Any] = {"values": np.ones(6, np.float32), name: array}
    values, run = arrays.pop("values"), PoolRun(switch, 1, 4)
    run.play(lambda worker, pool: pool.all_reduce(values, unit=0, **arrays))
    with pytest.raises(SereneError, match=message):
        raise run.errors[0]


# -- what ends a pool ----------------------------------------------------------------------------------------


def unplug(run: PoolRun) -> None:
    run.into_switch = lambda port, frame: None  # type: ignore[method-assign]


GONE = "PoolBroken: job 0 no longer waits for this worker: it was evicted, or the strategy was swapped"
LATE = "NoAnswer: the collective did not finish within 30 s: 1 of 3 workers have not contributed"
FEWER = "PoolBroken: job 0 has 2 members now, not 3: a worker has left or was evicted"
OVER = "PoolBroken: job 0 is over for this worker: the job is now in session "
SILENT = "NoAnswer: the switch has sent nothing for 10 s, and has not answered HELLO"


@pytest.mark.parametrize(
    ("happen", "messages"),
    [
        (lambda run: run.put_policy(ASP(), 2), ["PoolBroken: job 0 "] * 3),
        (lambda run: run.put_policy(SSP(3), 2), ["PoolBroken: job 0 "] * 3),
        (lambda run: run.put_policy(Quorum(2), 2), ["PoolBroken: job 0 "] * 3),
        (lambda run: run.put_policy(ASP(), 2), [GONE]),  # though the sums of one worker would still be right
        (lambda run: run.put_policy(BSP(), 2, members=[0, 2]), [FEWER, GONE, FEWER]),
        (lambda run: run.lose_session(), [OVER] * 3),
        (lambda run: run.kill(1), [LATE, None, LATE]),
        (unplug, [SILENT] * 3),
    ],
    ids=["ASP", "SSP", "quorum", "ASP of one", "eviction", "lost session", "death", "unreachable switch"],
)
def test_what_breaks_a_pool_is_reported_by_each_worker(
    switch: P4Switch, happen: Callable[[PoolRun], None], messages: list[str | None]
) -> None:
    """It happens in the middle of a long collective. messages: of each worker, None if it is dead."""
    run = PoolRun(switch, len(messages), 4, lossy(1, 0.01), give_up_s=10.0)
    given = vectors(len(messages), 400 * LANES)
    run.at(0.05, lambda: happen(run))
    timeout_s = 300.0 if happen is unplug else 30.0
    run.play(lambda worker, pool: pool.all_reduce(given[worker].copy(), timeout_s=timeout_s))
    for worker, text in enumerate(messages):
        error = run.errors.get(worker)
        assert text is None if error is None else f"{type(error).__name__}: {error}".startswith(str(text))
        if error is not None:
            with pytest.raises(PoolBroken, match=r"job 0 |cannot be used after a failed collective"):
                run.pools[worker].all_reduce(np.zeros(1, np.float32))


def test_pool_refuses_to_start_without_remaining_seqs(switch: P4Switch) -> None:
    def live(worker: int, pool: Pool) -> None:
        pool._client.protocol.exchange.awaited[:] = LAST_SEQ - 2
        pool.all_reduce(np.ones(10, np.float32))

    run = PoolRun(switch, 1, 4)
    run.play(live)
    assert str(run.errors[0]) == "job 0 has used all sequence numbers: start another job"


def test_refused_all_reduce_changes_no_counters_or_times(switch: P4Switch) -> None:
    """It exchanges nothing, and the time before it counts for the next call."""

    def live(worker: int, pool: Pool) -> None:
        pool.all_reduce(np.ones(10, np.float32))
        run.now += 1.0
        with pytest.raises(SereneError, match="values of 7 bits: expected"):
            pool.all_reduce(np.ones(10, np.float32), bits=7)
        assert (pool.compute_s, pool._reports._last_state) == (0.0, "computing")
        pool.all_reduce(np.ones(10, np.float32))
        assert pool.compute_s == pytest.approx(1.0)

    run = PoolRun(switch, 1, 4)
    run.play(live)
    assert not run.errors


def test_idle_pool_reports_while_its_worker_computes(switch: P4Switch) -> None:
    """Without reports the controller would take the worker for dead."""

    def live(worker: int, pool: Pool) -> None:
        pool.all_reduce(np.ones(10, np.float32))
        counts.append(len(run.punted))
        for _ in range(10):
            run.now += 1.0
            pool.idle()

    run, counts = PoolRun(switch, 1, 4), list[int]()
    run.play(live)
    assert not run.errors
    signs = [frame[2 + ENCAPSULATION_BYTES :] for frame in run.punted[counts[0] :]]
    assert len([sign for sign in signs if sign[1] == Op.REPORT]) >= 9


def test_all_reduce_succeeds_past_deadline_if_all_answered(switch: P4Switch) -> None:
    """For example, the process was not scheduled in time. No worker is missing."""
    run, values = PoolRun(switch, 1, 4), np.ones(10, np.float32)
    run.play(lambda worker, pool: pool.all_reduce(values, timeout_s=0.0))
    assert not run.errors
    assert values.tolist() == [1.0] * 10


@pytest.mark.parametrize("strategy", [ASP(), SSP(1), Quorum(1)], ids=str)
def test_pool_refuses_a_job_under_another_strategy(switch: P4Switch, strategy: Strategy) -> None:
    run = PoolRun(switch, 2, 4, strategy=strategy)
    run.play(lambda worker, pool: pool.all_reduce(np.ones(5000, np.float32)))
    assert {type(error) for error in run.errors.values()} == {PoolBroken}
    assert any("is not under BSP" in str(error) or "no longer waits" in str(error) for error in run.errors.values())


def test_pool_joins_at_a_later_epoch_and_its_precision(switch: P4Switch) -> None:
    run, given = PoolRun(switch, 2, 4), vectors(2, 5000)
    run.put_policy(BSP(), 3, precision=8)
    results = [vector.copy() for vector in given]

    def live(worker: int, pool: Pool) -> None:
        pool.all_reduce(results[worker])
        for _ in range(2):
            pool.all_reduce(np.ones(1, np.float32))
        assert pool.precision == 8

    run.play(live)
    assert not run.errors
    assert all(same(result, expected(given, LANES)) for result in results)
    assert within_bound(results[0], given, LANES)


def test_pool_breaks_for_new_process_in_a_used_place(switch: P4Switch) -> None:
    """The controller refuses such a process; here the switch's answer shows that the place was used."""
    run = PoolRun(switch, 1, 4)
    run.play(lambda worker, pool: pool.all_reduce(np.ones(5000, np.float32)))
    assert not run.errors
    again = Pool(run.wires[0], 0, 0, slots=4, lanes=LANES, incarnation=1, clock=lambda: run.now)
    run.pools[0] = again
    run.play(lambda worker, pool: pool.all_reduce(np.ones(5000, np.float32)))
    assert isinstance(run.errors[0], PoolBroken) and "another process has contributed" in str(run.errors[0])


def test_pool_refuses_a_job_with_another_slot_layout(switch: P4Switch) -> None:
    run = PoolRun(switch, 1, 4)
    run.pools[0] = Pool(run.wires[0], 0, 0, slots=2, lanes=640, incarnation=1, clock=lambda: run.now)
    run.play(lambda worker, pool: None)
    with pytest.raises(PoolBroken, match="job 0 has 4 slots of 320 lanes, not 2 of 640"):
        raise run.errors[0]


@pytest.mark.parametrize("odd", ["signature", "length", "bits", "scale", "voted"])
def test_disagreement_raises_on_all_and_leaves_state_unchanged(switch: P4Switch, odd: str) -> None:
    """Nothing of the vector is sent, kept as residual, lost or counted."""
    run, seen = PoolRun(switch, 4, 4, lossy(3)), []
    given = [vector[:5000].copy() for vector in vectors(4, 5000)]
    options: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "signature": ({"signature": b"sum"}, {"signature": b"max"}),
        "length": ({}, {}),
        "bits": ({"bits": 8}, {"bits": 16}),
        "scale": ({"bits": 8, "unit": -3}, {"bits": 8, "unit": -4}),
        "voted": ({"bits": 8, "unit": -3}, {"bits": 8}),
    }
    ours, theirs = options[odd]

    def live(worker: int, pool: Pool) -> None:
        values, other = given[worker].copy(), worker == 2
        values[0] = 1e30
        held, lost = np.full(5000, 0.25), np.zeros(5000)
        length = 100 if other and odd == "length" else 5000
        with pytest.raises(Disagreement, match="the 4 workers call different collectives"):
            pool.all_reduce(
                values[:length], **(theirs if other else ours), residual=held[:length],
                lost=lost[:length],
            )  # fmt: skip
        assert same(values[1:], given[worker][1:]) and values[0] == np.float32(1e30)
        assert (held == 0.25).all() and not lost.any() and not pool.lost_values
        pool.all_reduce(given[worker], b"sum")
        seen.append(given[worker])

    wanted = expected(given, LANES)
    run.play(live)
    assert not run.errors and len(seen) == 4
    assert all(same(values, wanted) for values in seen)


def test_workers_report_collectives_as_iterations(switch: P4Switch) -> None:
    before = [switch.count("contributions", worker) for worker in range(2)]
    run = PoolRun(switch, 2, 4)
    run.all_reduce(vectors(2, 5000))
    frames = [frame[2:] for frame in run.punted]
    reports = [frame[ENCAPSULATION_BYTES:] for frame in frames if frame[ENCAPSULATION_BYTES + 1] == Op.REPORT]
    last = json.loads(reports[-1][HEADER.itemsize :])
    assert last["state"] == "computing" and last["iteration"] == 1 and last["epoch"] == 1
    worker = int(np.frombuffer(reports[-1], HEADER, 1)[0]["worker"])
    assert last["contributions_sent"] == switch.count("contributions", worker) - before[worker]
