"""Parameter servers and gloo in place of the switch: sums and barriers by hand, the bits of one process, failures."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from serene.experiments.run.baseline import LoopbackNetwork
from serene.experiments.run.cli import _settings, parser
from serene.strategy import parse
from serene.workers import reference
from serene.workers.barrier import Barrier, WorkerGone
from serene.workers.baselines import ExchangeFailed, Place, ServerExchange, ranges
from serene.workers.server import Server
from serene.workers.training import Recipe
from tests.controller.processes import ROOT, until
from tests.support.warm_process import WarmProcess


class Together:
    """Contributions to a barrier, each from its own thread; worker w's values are w + 1."""

    def __init__(self, strategy: str, workers: int) -> None:
        self.barrier = Barrier(2, parse(strategy).compile(range(workers)))
        self._threads = ThreadPoolExecutor(16)

    def push(self, worker: int, round_: int) -> Future[tuple[np.ndarray, int, float]]:
        """Returns when it is added; the future ends when the worker may continue."""
        before = sum(self.barrier.contributions.values())
        future = self._threads.submit(self.barrier.contribute, worker, round_, np.full(2, worker + 1, np.int32))
        until(lambda: sum(self.barrier.contributions.values()) > before, "the contribution is counted")
        with self.barrier._changed:  # all that may continue have been notified
            pass
        return future


def read(future: Future[tuple[np.ndarray, int, float]]) -> tuple[list[int], int]:
    sums, total, _ = future.result(timeout=120)
    return sums.tolist(), total


def test_server_bsp_releases_all_with_the_same_sum() -> None:
    job = Together("bsp", 3)
    first, second = job.push(0, 0), job.push(1, 0)
    assert not first.done() and not second.done()
    third = job.push(2, 0)
    assert [read(each) for each in (first, second, third)] == [([6, 6], 3)] * 3
    ahead = job.push(0, 1)
    assert not ahead.done()
    assert job.barrier.last()[0].tolist() == [7, 7], "the next round is in the sum, and in nobody's read"
    job.barrier.fail(ExchangeFailed("over"))
    assert isinstance(ahead.exception(120), ExchangeFailed)


def test_server_ssp_blocks_a_worker_beyond_its_bound() -> None:
    job = Together("ssp:2", 2)
    assert read(job.push(0, 0)) == ([1, 1], 1)
    assert read(job.push(0, 1)) == ([2, 2], 2)
    held = job.push(0, 2)
    assert not held.done()
    assert read(job.push(1, 0)) == ([5, 5], 4)
    assert read(held) == ([5, 5], 4), "what is there when it continues"


def test_server_asp_answers_at_once() -> None:
    job = Together("asp", 2)
    assert [read(job.push(0, round_))[1] for round_ in range(5)] == [1, 2, 3, 4, 5]


def test_server_quorum_completes_early_and_adds_late_gradients() -> None:
    job = Together("quorum:2", 3)
    first = job.push(0, 0)
    assert not first.done()
    assert read(job.push(1, 0)) == ([3, 3], 2) and read(first) == ([3, 3], 2)
    assert read(job.push(2, 0))[1] in (2, 3) and job.barrier.last()[0].tolist() == [6, 6]


@pytest.mark.parametrize(("values", "servers"), [(10, 3), (79_510, 4), (3, 3), (7, 1)])
def test_server_ranges_partition_the_vector(values: int, servers: int) -> None:
    parts = ranges(values, servers)
    assert [index for part in parts for index in range(values)[part]] == list(range(values))
    sizes = [part.stop - part.start for part in parts]
    assert max(sizes) - min(sizes) <= 1 and len(parts) == servers


class Servers:
    """Servers in threads, and the workers' ends."""

    def __init__(self, strategy: str, workers: int, values: int, count: int) -> None:
        self._strategy, self._workers, self._values = strategy, workers, values
        self._pool = ThreadPoolExecutor(16)
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
        self.addresses = [each.getsockname() for each in sockets]
        self.servers = [
            Server(each, workers, Barrier(part.stop - part.start, parse(strategy).compile(range(workers))))
            for each, part in zip(sockets, ranges(values, count), strict=True)
        ]
        self.runs = [self._pool.submit(server.run) for server in self.servers]
        self.applied: list[list[np.ndarray]] = [[] for _ in range(workers)]

    def worker(self, worker: int) -> ServerExchange:
        place = Place(worker, self._workers, self._values)
        return ServerExchange(place, parse(self._strategy), self.applied[worker].append, self.addresses, 30.0)

    def all(self, action: Callable[[ServerExchange], object], exchanges: list[ServerExchange]) -> list[object]:
        return list(self._pool.map(action, exchanges))


@pytest.fixture
def pair() -> Iterator[tuple[Servers, list[ServerExchange]]]:
    servers = Servers("bsp", 2, 5, 2)
    exchanges = [servers.worker(worker) for worker in range(2)]
    servers.all(ServerExchange.join, exchanges)
    yield servers, exchanges
    for exchange in exchanges:
        exchange.abandon()


def test_silent_connection_does_not_block_parameter_server_join(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serene.workers.server.HELLO_TIMEOUT_S", 0.2)
    servers = Servers("asp", 1, 5, 1)
    with socket.create_connection(servers.addresses[0]):
        (exchange,) = exchanges = [servers.worker(0)]
        servers.all(ServerExchange.join, exchanges)
        exchange.abandon()


def test_server_exchange_applies_sums_since_the_last_read(pair: tuple[Servers, list[ServerExchange]]) -> None:
    servers, exchanges = pair
    for step in (1, 2):
        gradients = [np.arange(5, dtype=np.float32) * step, np.full(5, 0.5, np.float32)]

        def exchange(one: ServerExchange, gradients: list[np.ndarray] = gradients) -> object:
            return one.exchange(gradients[one.place.worker])

        servers.all(exchange, exchanges)
        for applied in servers.applied:
            assert applied[-1].tolist() == [0.5 + step * value for value in range(5)]
    servers.all(lambda one: one.finish(30.0), exchanges)
    for run, server in zip(servers.runs, servers.servers, strict=True):
        run.result(timeout=120)
        assert dict(server.barrier.contributions) == {0: 2, 1: 2}
    assert [exchange.telemetry()["contributions_sent"] for exchange in exchanges] == [4, 4]


def test_lost_worker_fails_the_exchange_for_all(pair: tuple[Servers, list[ServerExchange]]) -> None:
    servers, exchanges = pair
    failing = ThreadPoolExecutor(1).submit(exchanges[0].exchange, np.ones(5, np.float32))
    until(lambda: all(server.barrier.contributions[0] for server in servers.servers), "it is blocked")
    assert not failing.done()
    exchanges[1].abandon()
    with pytest.raises(ExchangeFailed, match="lost the connection to a parameter server or worker"):
        failing.result(timeout=120)
    for run in servers.runs:
        with pytest.raises(WorkerGone, match="worker 1 disconnected before the end of the job"):
            run.result(timeout=120)


def test_second_worker_with_the_same_number_is_refused() -> None:
    servers = Servers("asp", 2, 5, 1)
    first, second, other = servers.worker(0), servers.worker(0), servers.worker(1)
    joining = threading.Thread(target=first.join)
    joining.start()
    until(lambda: bool(servers.servers[0]._connections), "the first one is there")
    with pytest.raises(ExchangeFailed, match="has worker 0"):
        second.join()
    other.join()
    joining.join(timeout=120)
    for exchange in (first, second, other):
        exchange.abandon()


def test_concurrent_runs_get_different_ports(tmp_path: Path) -> None:
    """The ports stay reserved until a run's server is up, which takes seconds."""
    arguments = parser().parse_args(["--no-mininet", "--out", str(tmp_path / OUT), "--exchange", "sharded"])
    settings = _settings(arguments)
    with LoopbackNetwork(settings, tmp_path) as one, LoopbackNetwork(settings, tmp_path) as other:
        addresses = one.addresses([0, 1]) + other.addresses([0, 1])
        assert len(set(addresses)) == 4
        for address in addresses:
            with pytest.raises(OSError, match="in use"), socket.socket() as somebody:
                somebody.bind(address)
            with socket.create_server(address) as server, socket.create_connection(address):
                server.accept()[0].close()


OUT = os.fsdecode(b"[b]\xff")  # which is neither markup nor UTF-8


class Run:
    """A run of three workers. Its process's id is the program's own."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._log = folder / "log"
        command = ["-m", "serene.experiments.run", "--no-mininet", "--workers", "3", "--out", str(folder / OUT)]
        with self._log.open("w") as log:
            self.process = WarmProcess([*command, *options], log.fileno(), log.fileno(), ROOT, modules="torch")

    @property
    def output(self) -> str:
        return self._log.read_text()

    def ended(self) -> tuple[int, str]:
        """Status and output."""
        try:
            status = self.process.wait(110)
        finally:
            self.process.kill()
        return status, self.output


@pytest.mark.parametrize("exchange", ["sharded", "rpc", "gloo"])
def test_baseline_run_equals_one_process_to_the_bit(exchange: str, tmp_path: Path) -> None:
    status, output = Run(tmp_path, "--exchange", exchange, "--steps", "4", "--compute-ms", "0").ended()
    assert status == 0, output
    summary = json.loads((tmp_path / OUT / "summary.json").read_text())
    expected = reference.train(Recipe(workers=3, steps=4, seed=1))
    for worker in range(3):
        assert np.load(tmp_path / OUT / f"parameters-{worker}.npy").tobytes() == expected.tobytes()
    applied = 3 * 4 * (3 if exchange == "sharded" else 1)
    assert summary["contributions_sent"] == applied
    if exchange == "gloo":  # which counts nothing, so that there is no verdict
        assert summary["contributions_applied"] is summary["miscounted"] is None
        assert f"contributions sent {applied}\n" in output
    else:
        assert (summary["contributions_applied"], summary["miscounted"]) == (applied, [])
        assert f"contributions sent {applied}, applied {applied}: exactly once" in output
    assert "[b]\\udcff/  summary.json  metrics.csv" in output
    assert (tmp_path / OUT / "metrics.csv").read_bytes().count(b"\n[b]\xff,") == 3 * 4
    assert (summary["exchange"], summary["target"]) == (exchange, "loopback")
    assert summary["strategy"] == "bsp"
    assert summary["changes"] == [{"t": 0.0, "epoch": 1, "strategy": "BSP"}]
    assert set(summary["seconds_to_accuracy"]) >= {"0.80", "0.90"}


def endless(directory: Path, exchange: str) -> Run:
    """Starts a run of three workers without an end."""
    run = Run(directory, "--exchange", exchange, "--steps", "100000", "--compute-ms", "5")

    def trains() -> bool:
        assert run.process.poll() is None, run.output
        steps = [path.read_bytes().count(b"\n") for path in directory.glob(".run-*/worker-*.csv")]
        return len(steps) == 3 and min(steps) > 2

    until(trains, "the workers train")
    return run


@pytest.mark.parametrize("exchange", ["sharded", "rpc", "gloo"])
def test_ctrl_c_saves_partial_results_of_baseline_run(exchange: str, tmp_path: Path) -> None:
    run = endless(tmp_path, exchange)
    run.process.send_signal(signal.SIGINT)
    status, output = run.ended()
    assert status == 130, output
    assert "stopped before all steps were done" in output and "NOT EQUAL" not in output
    assert {path.name for path in tmp_path.iterdir()} == {"log", OUT}
    summary = json.loads((tmp_path / OUT / "summary.json").read_text())
    sent, applied = summary["contributions_sent"], summary["contributions_applied"]
    assert summary["stopped"] and sent > 0
    if exchange == "gloo":
        assert applied is None
    else:
        assert sent <= applied <= sent + summary["contributions_under_way"]


@pytest.mark.parametrize("exchange", ["server", "rpc", "gloo"])
def test_killed_worker_ends_a_baseline_run_with_an_error(exchange: str, tmp_path: Path) -> None:
    run = endless(tmp_path, exchange)

    def worker(number: int) -> int:
        children = Path(f"/proc/{run.process.pid}/task/{run.process.pid}/children").read_text().split()
        (found,) = [pid for pid in children if Path(f"/proc/{pid}/comm").read_text().strip() == f"worker-{number}"]
        return int(found)

    os.kill(worker(1), signal.SIGKILL)
    status, output = run.ended()
    assert status == 1
    assert "error: " in output and "ended with status" in output
    assert not (tmp_path / OUT).exists()
