"""A host that floods delays no other host, and memory does not grow with it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from serene.controller.admission.admission import COMPLAINTS_PER_PORT
from serene.controller.admission.frames import Request
from serene.controller.admission.inbox import REPORTS_PER_PORT, WAITING_PER_PORT, Inbox, Pace
from serene.controller.http.client import ControllerClient
from serene.controller.switch.learning import BATCH, Learning
from serene.controller.switch.plan_entries import Installed
from serene.entries import Endpoint, Entry
from serene.strategy import ASP, BSP
from serene.wire import Op
from tests.controller.hosts import Caught, Host, ethernet, reaches_only
from tests.controller.processes import ControllerProcess, resident_mb, until


@pytest.fixture(scope="module")
def warm() -> bool:
    return False


def invented(number: int) -> str:
    return ":".join(f"{octet:02x}" for octet in (0x02EE << 32 | number).to_bytes(6, "big"))


BURST = 20


@contextmanager
def meanwhile(frames: list[bytes], host: Host, controller: ControllerProcess) -> Iterator[None]:
    """These frames, again and again from another thread: up to two thousand in each second that the controller has for
    them. The time in which others had its processor does not count, or a busy machine would make the flood a larger
    one: it would fill the switch's queue to the controller, which all hosts share."""
    stop = threading.Event()

    def clock() -> float:
        with suppress(OSError):  # a kernel that does not count it
            return (
                time.monotonic() - int(Path(f"/proc/{controller.process.pid}/schedstat").read_text().split()[1]) / 1e9
            )
        return time.monotonic()

    def flood() -> None:
        while True:
            for first in range(0, len(frames), BURST):
                for frame in frames[first : first + BURST]:
                    host.link.send(frame)
                end = clock() + 0.01
                while (left_s := end - clock()) > 0:
                    if stop.wait(left_s):
                        return

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def join_and_leave(hosts: list[Host], job: int) -> None:
    """Two workers, each repeating what it asks as workers do: a switch's own queues may lose it."""

    def receives(host: Host, op: Op) -> bool:
        answer = host.hear(0.1)
        while answer is not None and answer.op is not op:
            answer = host.hear(0.02)
        return answer is not None

    def joined() -> bool:
        for worker, host in enumerate(hosts[:2]):
            host.hello(job, worker, 5)
        return any([receives(host, Op.WELCOME) for host in hosts[:2]])

    def got_bye(worker: int, host: Host) -> bool:
        host.leave(job, worker)
        return receives(host, Op.BYE)

    until(joined, f"job {job} starts")
    for worker, host in enumerate(hosts[:2]):
        until(partial(got_bye, worker, host), f"worker {worker} leaves")


# -- on a switch ---------------------------------------------------------------------------------------------


def test_flood_of_invented_addresses_does_not_delay_admission(
    controller: ControllerProcess, client: ControllerClient, hosts: list[Host]
) -> None:
    first, second, hostile = hosts
    first.link.send(ethernet(second.mac, first.mac))
    until(lambda: reaches_only(second, first.mac, first, hostile), "the first host's place is known")
    frames = [ethernet("ff:ff:ff:ff:ff:ff", invented(number)) for number in range(10_000)]
    before = resident_mb(controller)
    with meanwhile(frames, hostile, controller):
        for job in range(3):
            client.create_job(2, BSP(), job=job)
            join_and_leave(hosts, job)
    assert resident_mb(controller) < before + 30
    until(lambda: reaches_only(second, first.mac, first, hostile), "its place, of which it told once, is known still")
    second.link.send(ethernet(hostile.mac, invented(77_777)))
    assert client.status().switch.connected


def prepared(host: Host, send: Callable[[int], None], count: int) -> list[bytes]:
    """So many frames that the host would send."""
    caught, link = Caught(), host.link
    host.link = caught
    for number in range(count):
        send(number)
    host.link = link
    return caught.frames


def test_flood_of_hellos_does_not_delay_admission(
    controller: ControllerProcess, client: ControllerClient, hosts: list[Host]
) -> None:
    hostile = hosts[2]

    def hello(number: int) -> None:
        hostile.incarnation, hostile.udp_port = 1 + number, 1024 + number
        hostile.hello(1 + number % 255, number % 256, 5)  # not job 0: a free place is for whoever asks first

    frames, before = prepared(hostile, hello, 3000), resident_mb(controller)
    with meanwhile(frames, hostile, controller):
        client.create_job(2, BSP(), job=0)
        join_and_leave(hosts, 0)
    assert resident_mb(controller) < before + 30
    logged = [line for line in controller.log.read_text().splitlines() if "answered port 3" in line]
    in_each_second = Counter(line[: len("2026-11-26 02:42:56")] for line in logged)
    assert max(in_each_second.values()) <= 2 * COMPLAINTS_PER_PORT, "and neither does the log"


def test_flood_of_reports_does_not_delay_admission(
    controller: ControllerProcess, client: ControllerClient, hosts: list[Host]
) -> None:
    client.create_job(1, ASP(), job=1)
    hosts[2].ask(lambda: hosts[2].hello(1, 0, 5), Op.WELCOME)
    report = partial(hosts[2].report, 1, 0, state="x" * 90)
    frames = prepared(hosts[2], lambda number: report(iteration=number, loss=number * 0.5), 1000)
    with meanwhile(frames, hosts[2], controller):
        client.create_job(2, BSP(), job=0)
        join_and_leave(hosts, 0)
    until(lambda: client.job(1).workers[0].report, "the latest of them are heard")
    hosts[2].ask(lambda: hosts[2].leave(1, 0), Op.BYE)


# -- learning ------------------------------------------------------------------------------------------------


def learn(learning: Learning, *seen: tuple[str, int]) -> int:
    """All of it; how many writes that took."""
    writes = 0
    for mac, port in seen:
        learning.seen(mac, port)
    while learning.anything:
        updates, _ = learning.next()
        assert len(updates) <= 4 * (BATCH + 32)
        writes += 1
    return writes


def test_full_mac_table_evicts_from_port_with_most_entries() -> None:
    learning = Learning(capacity=10)
    learn(learning, *[(invented(number), 1) for number in range(3)])
    for number in range(100, 150):
        learn(learning, (invented(number), 2))
    behind = [mac for mac, port in learning.port_of.items() if port == 2]
    assert len(learning.port_of) == 10
    assert behind == [invented(number) for number in range(143, 150)], "its own oldest are out"
    learn(learning, *[(invented(number), 3) for number in range(200, 205)])
    assert sorted(learning.port_of.values()) == [1, 1, 1, 2, 2, 2, 3, 3, 3, 3], "others find room all the same"


def test_full_mac_table_deletes_entries_before_inserting() -> None:
    learning = Learning(capacity=1)
    learn(learning, (invented(1), 1))
    learning.seen(invented(2), 1)
    updates, _ = learning.next()
    kinds = [(update.kind.name, update.entity.table) for update in updates if isinstance(update.entity, Entry)]
    assert kinds == [
        ("DELETE", "known_source"), ("DELETE", "forward"), ("INSERT", "known_source"), ("INSERT", "forward")
    ]  # fmt: skip


def test_many_learned_addresses_need_few_writes() -> None:
    learning = Learning()
    for number in range(10_000):
        learning.seen(invented(number), 1)
    learning.seen(invented(20_000), 2)
    learning.next()
    assert learning.port_of[invented(20_000)] == 2, "the other port's turn comes in the first write"
    assert learn(learning) < 5
    assert len(learning.port_of) == 65, "the others are seen again"


def test_learning_ignores_multicast_and_follows_moves() -> None:
    learning = Learning()
    learn(learning, ("01:00:5e:00:00:01", 1), (invented(1), 1), (invented(1), 2), (invented(1), 2))
    assert learning.port_of == {invented(1): 2}


def test_takeover_deletes_half_learned_addresses() -> None:
    learning = Learning()
    found = Installed(
        forwarded={invented(1): 1, invented(2): 2, invented(3): 3},
        known={(invented(1), 1), (invented(3), 1), (invented(4), 4)},
    )
    updates = learning.take_over(found)
    tables = [update.entity.table for update in updates if isinstance(update.entity, Entry)]
    assert learning.port_of == {invented(1): 1}
    assert tables.count("forward") == 2
    assert tables.count("known_source") == 2


# -- the inbox -----------------------------------------------------------------------------------------------


def request(port: int, incarnation: int = 1, op: Op = Op.HELLO, worker: int = 0, payload: bytes = b"") -> Request:
    return Request(op, 0, worker, Endpoint(port, "02:00:00:00:00:01", "10.0.0.1", 4000, incarnation), 0, 0, payload)


def drained(inbox: Inbox) -> list[Request]:
    async def take() -> list[Request]:
        taken: list[Request] = []
        while True:
            got = asyncio.ensure_future(inbox.get())
            await asyncio.sleep(0)  # what is there already comes at once
            if not got.done():
                got.cancel()
                return taken
            taken.append(got.result())

    return asyncio.run(take())


def test_inbox_serves_ports_in_turn_within_bounds() -> None:
    inbox = Inbox()
    for incarnation in range(1, 1000):
        inbox.put(request(1, incarnation))
    inbox.put(request(2))
    for _ in range(100):
        inbox.put(request(3))
    served = drained(inbox)
    assert [one.sender.port for one in served[:4]] == [1, 2, 3, 1]
    assert len(served) == WAITING_PER_PORT + 2, "the same request again is one"
    assert inbox.overlooked == 999 - WAITING_PER_PORT


def test_inbox_serves_reports_last_and_keeps_only_the_latest() -> None:
    inbox = Inbox()
    for number in range(1000):
        inbox.put(request(1, op=Op.REPORT, payload=b"%d" % number))
    for worker in range(1000):
        inbox.put(request(2, op=Op.REPORT, worker=worker))
    inbox.put(request(1, op=Op.LEAVE))
    served = drained(inbox)
    assert (served[0].op, served[1].payload) == (Op.LEAVE, b"999")
    assert len(served) == 2 + REPORTS_PER_PORT


def test_pace_limits_answers_per_port_and_is_bounded() -> None:
    pace = Pace(0.5, 2)
    assert [pace.allows(1, who, 10.0) for who in "aabc"] == [True, False, True, False]
    assert pace.allows(2, "c", 10.0)
    assert not pace.allows(1, "a", 10.49)
    assert [pace.allows(1, who, 10.5) for who in "aab"] == [True, False, True]
    assert sum(len(answered) for answered in pace._answered.values()) <= 3
