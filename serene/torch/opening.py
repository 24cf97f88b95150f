"""Getting a job for a group: rank 0 makes the controller create it, and passes its data to the other ranks through the
store."""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from torch.distributed import Store  # type: ignore[attr-defined]

from serene.client import FrameTransport, ShmTransport, Transport, TransportError, UdpTransport
from serene.client.allreduce.blocks import BITS
from serene.client.allreduce.pool import Pool
from serene.client.allreduce.scale import BadScale, Scale
from serene.client.transport.transport import PortTaken
from serene.errors import SereneError, choices
from serene.http import Connection, controller_url
from serene.torch.placement import RACK, Placement, own_rack
from serene.torch.ring import Ring
from serene.wire import SERENE_UDP_PORT

PRECISION = "SERENE_PRECISION"  # bits of a gradient's values in packets, until 'serenectl precision' changes them
SCALE = "SERENE_SCALE"  # of gradients: `serene.client.allreduce.scale.Scale`
SLOTS = 512  # of a group; half of them may be under way at a time
HTTP_TIMEOUT_S = 15.0
COUNTERS_S = 3600.0  # counters are not needed here, and reading those of many workers takes long
HEARING_TIMEOUT = timedelta(seconds=10)  # for all ranks to learn why there is no group
LOOPBACK = "127.0.0.1"

LOG = logging.getLogger(__name__)


class NotOpened(SereneError):
    """The group gets no job; the message names the rank and the reason."""


class OpeningFailed(SereneError, RuntimeError):
    """A rank has died, or is late, while a group is made. Then there is no group, not even with gloo."""


@dataclass(frozen=True)
class JobAccess:
    """The data that a rank needs to reach the group's job. Rank 0 passes it to the others.

    slots, lanes: of the job. udp_ports: of an embedded switch on this machine, each port's number with two UDP ports,
    the switch's and ours. shm_ports: likewise, each port's number with its path. Both are empty if the switch is
    reached over the network, at switch_ip. precision: initial bits of a gradient's values.
    """

    job: int
    slots: int
    lanes: int
    switch_ip: str
    udp_ports: Sequence[tuple[int, int, int]] = ()
    shm_ports: Sequence[tuple[int, str]] = ()
    precision: int = 32

    @property
    def way(self) -> str:
        """A text of the packets' transport."""
        if self.shm_ports:
            return "shared memory"
        return "UDP on loopback" if self.udp_ports else f"UDP to {self.switch_ip}"


class Controller:
    """A group's requests to the controller. Each method raises SereneError if it does not answer or refuses."""

    def __init__(self) -> None:
        self.url = controller_url()

    def racks(self) -> int:
        """The number of racks: one for each leaf, or one with a single switch."""
        return max(len(self._status()["switches"]) - 1, 1)

    def create(self, workers: int, by_rack: Sequence[int] | None = None) -> JobAccess:
        """Makes a job that is a pool. by_rack: workers in each rack, if there are several. Also raises NotOpened for a
        wrong $SERENE_PRECISION."""
        precision = gradient_bits()
        switch = self._status()["switch"]
        if not switch["connected"]:  # no error: the switch may be restarting
            LOG.warning(
                "the controller at %s waits for its switch: %s; see 'serenectl status'",
                self.url,
                switch["trouble"],
            )
        asked = {"workers": workers, "pool_slots": SLOTS, "precision": precision, "racks": by_rack}
        job = self._ask("POST", "/v1/jobs", asked)
        return self._access(switch, job["job"], job["slots"], precision)

    def find(self, name: str) -> int | None:
        """The number of the job of this name that has not finished, if there is one."""
        jobs = self._status()["jobs"]
        return next((job["job"] for job in jobs if job["name"] == name and job["state"] != "finished"), None)

    def place(self, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        """A place in a named job, or the reason why this process has to ask again: the fields of
        `serene.controller.status.model.PlaceStatus`. asked: the body of POST /v1/places."""
        found: Mapping[str, Any] = self._ask("POST", "/v1/places", dict(asked))
        return found

    def access(self, job: int, values: int) -> JobAccess:
        """The access to the switch for a job whose vectors have this number of values."""
        switch = self._status()["switch"]
        return self._access(switch, job, -(-values // switch["lanes"]))

    @staticmethod
    def _access(switch: Mapping[str, Any], job: int, slots: int, precision: int = 32) -> JobAccess:
        return JobAccess(
            job,
            slots,
            switch["lanes"],
            switch["ip"],
            [(at["port"], at["switch"], at["host"]) for at in switch["udp_ports"]],
            [(at["port"], at["path"]) for at in switch["shm_ports"]],
            precision,
        )

    def way_to_switch(self) -> dict[str, Any]:
        """The access to the switch, without a job."""
        return asdict(self._access(self._status()["switch"], 0, 0))

    def check_room(self, values: int) -> None:
        """Raises SereneError if the switch is too small for a vector of this number of values."""
        switch = self._status()["switch"]
        if values > (most := switch["slots"] * switch["lanes"]):
            raise SereneError(
                f"{values:,} parameters: the switch has room for {most:,} ({switch['slots']:,} slots of "
                f"{switch['lanes']} values)"
            )

    def slow(self, job: int) -> Mapping[str, Any] | None:
        """The job's slow worker, if there is one: the fields of `serene.controller.status.model.SlowWorker`."""
        found: Mapping[str, Any] | None = self._ask("GET", f"/v1/jobs/{job}")["slow"]
        return found

    def delete(self, job: int) -> None:
        """Deletes a job."""
        self._ask("DELETE", f"/v1/jobs/{job}")

    def _status(self) -> Any:
        with self._connection() as controller:
            status = controller.ask("GET", f"/v1/status?counters_s={COUNTERS_S:g}")
            if not isinstance(status, dict) or "switch" not in status:
                raise controller.somebody_else()
        return status

    def _connection(self) -> Connection:
        return Connection(self.url, timeout_s=HTTP_TIMEOUT_S, start="serenectl up --local")

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        with self._connection() as controller:
            return controller.ask(method, path, body)


def gradient_bits() -> int:
    """The precision in $SERENE_PRECISION, 32 by default. Raises NotOpened."""
    text = os.environ.get(PRECISION, "32")
    if text not in map(str, BITS):
        raise NotOpened(f"${PRECISION} is {text!r}: expected {choices(BITS)}")
    return int(text)


def gradient_scale() -> Scale:
    """The scale in $SERENE_SCALE, voted by default. Raises NotOpened."""
    text = os.environ.get(SCALE, str(Scale()))
    try:
        return Scale.of(text)
    except BadScale as error:
        raise NotOpened(f"${SCALE} is {text!r}: {error}") from None


def _settings() -> dict[str, str]:
    """The settings in this rank's environment that have to be equal on all ranks. Raises NotOpened."""
    return {PRECISION: str(gradient_bits()), SCALE: str(gradient_scale())}


def _expect_the_same(theirs: Mapping[str, str]) -> None:
    """Raises NotOpened if this rank's environment differs from rank 0's."""
    ours = _settings()
    if others := [name for name, text in ours.items() if text != theirs[name]]:
        text = "; ".join(f"${name} is {ours[name]} here and {theirs[name]} on rank 0 of the group" for name in others)
        raise NotOpened(text)


def open_pool(
    store: Store, rank: int, size: int, timeout: timedelta, world: tuple[int, int]
) -> tuple[Pool, Ring, JobAccess, Placement]:
    """Every rank of the group calls it: all get a pool that has joined, or all raise NotOpened. If a rank is missing,
    the others raise OpeningFailed. timeout: for each step in which a rank waits for others. world: this process's rank
    in the default group, and that group's size."""
    try:
        return _open(store, rank, size, timeout, world)
    except NotOpened:
        _hear_out(store, rank, size)
        raise


def _open(
    store: Store, rank: int, size: int, timeout: timedelta, world: tuple[int, int]
) -> tuple[Pool, Ring, JobAccess, Placement]:
    racks, settings = _answer_to_first(store, "first", rank, lambda: [Controller().racks(), _settings()], timeout)
    placement = _placement(store, rank, size, racks, settings, timeout, world)
    access_fields = _answer_to_first(
        store, "access", rank, lambda: asdict(Controller().create(size, placement.sizes)), timeout
    )
    access = JobAccess(**access_fields)
    pool: Pool | None = None
    try:
        problem = ""
        try:
            transport = transport_to(access, rank)
            rack, worker = placement.of(rank)
            pool = Pool(
                transport, access.job, worker,
                slots=access.slots, lanes=access.lanes, precision=access.precision, rack=rack,
            )  # fmt: skip
        except SereneError as missing:
            problem = str(missing)
        _agree(store, "transport", rank, size, problem, timeout)
        assert pool is not None
        try:
            pool.join(timeout.total_seconds())
            ring = Ring(store, rank, size, _our_address(access), timeout)
        except (SereneError, OSError, RuntimeError) as refused:  # RuntimeError: of the store
            problem = f"{refused} (${RACK} sets a rank's rack)" if placement.racks else str(refused)
        _agree(store, "joined", rank, size, problem, timeout)
        return pool, ring, access, placement
    except BaseException:
        if pool is not None:
            pool.close()
        if rank == 0:
            with suppress(SereneError):  # the job or the controller is gone: the first error counts
                Controller().delete(access.job)
        raise


def _hear_out(store: Store, rank: int, size: int) -> None:
    """Waits until all ranks have read why there is no group: the error usually ends the program, and rank 0's process
    usually has the store in which the others read it."""
    with suppress(RuntimeError):
        store.set(f"heard/{rank}", "")
        if rank == 0:
            store.wait([f"heard/{other}" for other in range(size)], HEARING_TIMEOUT)


def _answer_to_first(store: Store, key: str, rank: int, ask: Callable[[], Any], timeout: timedelta) -> Any:
    """The controller's data for rank 0, which passes it to the others through the store. Raises NotOpened."""
    if rank == 0:
        try:
            store.set(key, json.dumps({"heard": ask()}))
        except SereneError as error:
            store.set(key, json.dumps({"error": str(error)}))
    answer = json.loads(_get(store, key, 0, timeout))
    if "error" in answer:
        raise NotOpened(f"rank 0 of the group could not create a job: {answer['error']}")
    return answer["heard"]


def _placement(
    store: Store, rank: int, size: int, racks: int, settings: Mapping[str, str], timeout: timedelta,
    world: tuple[int, int],
) -> Placement:  # fmt: skip
    """The racks of the ranks. settings: rank 0's. Raises NotOpened if a rank has others, or names a rack that does not
    exist. This comes before the job is made: a launcher may end rank 0 as soon as another rank fails, and then no
    process would delete the job."""
    problem = ""
    try:
        _expect_the_same(settings)
        if racks > 1:
            store.set(f"rack/{rank}", str(own_rack(racks, *world)))
    except SereneError as error:
        problem = str(error)
    _agree(store, "placed", rank, size, problem, timeout)
    if racks == 1:
        return Placement()
    return Placement(tuple(int(_get(store, f"rack/{other}", other, timeout)) for other in range(size)), racks)


def transport_to(access: JobAccess, rank: int) -> Transport:
    """A transport to the switch for one process. On one machine a port belongs to the process that has bound its socket
    or connected to its path. The kernel ensures that, also when a process dies. Raises NotOpened."""
    ways = _ways(access)
    if not ways:
        return UdpTransport(access.switch_ip)
    first = rank % len(ways)
    for way in [*ways[first:], *ways[:first]]:
        try:
            return way()
        except PortTaken as error:
            last = error
        except TransportError as error:
            raise NotOpened(f"{error}; check the switch with 'serenectl status'") from error
    raise NotOpened(
        f"all {len(ways)} local ports of the switch are taken (the last one: {last}); "
        "get more with 'serenectl up --local --ports 1-N'"
    )


def _ways(access: JobAccess) -> list[Callable[[], Transport]]:
    """Functions that open a transport, one for each port of a switch on this machine."""
    ip, ways = access.switch_ip, list[Callable[[], Transport]]()
    for port, path in access.shm_ports:
        ways.append(partial(ShmTransport, port - 1, path, switch_ip=ip))
    for port, switch, ours in access.udp_ports:
        to = (LOOPBACK, switch)
        ways.append(partial(FrameTransport, port - 1, local=(LOOPBACK, ours), switch=to, switch_ip=ip))
    return ways


def _our_address(access: JobAccess) -> str:
    """The IP address at which the other ranks reach this machine."""
    return LOOPBACK if access.udp_ports or access.shm_ports else address_towards(access.switch_ip)


def address_towards(switch_ip: str) -> str:
    """This host's IP address on the way to the switch. Raises OSError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((switch_ip, SERENE_UDP_PORT))
        return str(probe.getsockname()[0])


def address_of_gloo(store: Store, rank: int, size: int, timeout: timedelta) -> str | None:
    """This host's IP address for gloo: the one on the route to the switch. None if the route is not known. Raises
    OpeningFailed if rank 0 is missing."""
    if size == 1:
        return None
    try:
        return _our_address(JobAccess(**_answer_to_first(store, "switch", rank, Controller().way_to_switch, timeout)))
    except (NotOpened, OSError):  # `open_pool` reports this error
        return None


def _agree(store: Store, what: str, rank: int, size: int, error: str, timeout: timedelta) -> None:
    """Exchanges the ranks' errors, "" for none. Raises NotOpened if any rank has one."""
    store.set(f"{what}/{rank}", error)
    for other in range(size):
        if error := _get(store, f"{what}/{other}", other, timeout):
            raise NotOpened(f"rank {other} of the group: {error}")


def _get(store: Store, key: str, other: int, timeout: timedelta) -> str:
    """Another rank's message. Raises OpeningFailed."""
    try:
        store.wait([key], timeout)
        return store.get(key).decode()
    except RuntimeError as error:  # timeout, or the store's process has died
        raise OpeningFailed(f"no message from rank {other} while the group was opened: {error}") from error
