"""A controller's settings."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from serene.arguments import usage
from serene.errors import BadUsage, SereneError, choices
from serene.http import DEFAULT_HTTP, LONGEST_PATH, TOKEN, token
from serene.program import JUMBO, PLAIN, TREE, VARIANTS, chosen_program
from serene.racks import MAX_RACKS

DEFAULT_SWITCH = "127.0.0.1:9559"
DEFAULT_PORTS = "1-32"
DEFAULT_UPLINK = 33
ROOT = "root"  # the name of the root switch; every other name is a leaf's


@dataclass(frozen=True)
class UdpPort:
    """A port of an embedded switch that is a UDP socket on loopback. port: its number. switch, host: the UDP ports of
    the switch and of the host at the other end."""

    port: int
    switch: int
    host: int


@dataclass(frozen=True)
class ShmPort:
    """A port of an embedded switch that is memory shared with a process of its machine. port: its number. path: of the
    socket to which the process connects."""

    port: int
    path: str


@dataclass(frozen=True)
class NamedSwitch:
    """One of several switches: the root, or the leaf of a rack. address: HOST:PORT of its P4Runtime server."""

    name: str
    address: str


def host_and_port(text: str) -> tuple[str, int]:
    """``HOST:PORT`` as a pair. Raises ValueError."""
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isdecimal() and len(port) <= 5 and 0 < int(port) < 2**16):
        raise ValueError(f"{text!r}: expected HOST:PORT, for example {DEFAULT_SWITCH}")
    return host.strip("[]"), int(port)


def switches_of(text: str) -> list[NamedSwitch]:
    """The switches in ``root=HOST:PORT,leaf1=HOST:PORT,...``, the root first; empty for one address. Raises
    ValueError."""
    if "=" not in text and "," not in text:
        return []
    found: list[NamedSwitch] = []
    for part in text.split(","):
        name, equals, address = part.partition("=")
        if not (equals and name.isidentifier()):
            raise ValueError(
                f"{part!r}: with several switches, expected NAME=HOST:PORT, for example leaf1={DEFAULT_SWITCH}"
            )
        host_and_port(address)
        for other in found:
            if name == other.name:
                raise ValueError(f"two switches have the name {name}")
            if address == other.address:
                raise ValueError(f"{other.name} and {name} are both at {address}")
        found.append(NamedSwitch(name, address))
    leaves = [switch for switch in found if switch.name != ROOT]
    if len(leaves) == len(found):
        raise ValueError(f"no {ROOT}: expected {ROOT}=HOST:PORT beside {choices([leaf.name for leaf in leaves])}")
    if not 2 <= len(leaves) <= MAX_RACKS:
        alone = "; one switch needs no root: --switch HOST:PORT" if len(leaves) < 2 else ""
        raise ValueError(f"{len(leaves)} {'leaf' if len(leaves) == 1 else 'leaves'} below the root: expected 2 to "
                         f"{MAX_RACKS}{alone}")  # fmt: skip
    return [*(switch for switch in found if switch.name == ROOT), *leaves]


def port_numbers(text: str, first_port: int = 1, last_port: int = 254) -> list[int]:
    """``1-4,7`` as [1, 2, 3, 4, 7]. first_port, last_port: the valid numbers, by default those that workers may have.
    Raises ValueError."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        try:
            chosen = range(int(first), int(last or first) + 1)
        except ValueError:
            chosen = range(0)
        if not chosen or chosen[0] < first_port or chosen[-1] > last_port:
            expected = f"expected port numbers from {first_port} to {last_port}, for example 1-4 or 1,2,5"
            raise ValueError(f"{text!r}: {expected}")
        numbers.extend(chosen)
    return sorted(set(numbers))


def udp_port_numbers(text: str) -> list[UdpPort]:
    """The ports in ``1:24200:24201,2:24202:24203``. Raises ValueError."""
    try:
        found = [UdpPort(*map(int, part.split(":"))) for part in text.split(",") if part]
    except (ValueError, TypeError):
        raise ValueError(f"{text!r}: expected PORT:SWITCH:HOST, for example 1:24200:24201,2:24202:24203") from None
    sockets = [number for at in found for number in (at.switch, at.host)]
    if not (_are_ports([at.port for at in found]) and all(0 < each < 2**16 for each in sockets) and _differ(sockets)):
        raise ValueError(f"{text!r}: expected ports from 1 to 254 and UDP ports from 1 to 65535, each once")
    return found


def shm_port_paths(text: str) -> list[ShmPort]:
    """The ports in ``1:/run/port1,2:/run/port2``. Raises ValueError."""
    found = []
    for part in re.split(r",(?=\d+:/)", text) if text else []:  # a path may have commas
        number, _, path = part.partition(":")
        if not (number.isdecimal() and len(number) <= 3 and path.startswith("/")):
            raise ValueError(f"{text!r}: expected PORT:/PATH, for example 1:/run/port1,2:/run/port2")
        found.append(ShmPort(int(number), path))
    if not (_are_ports([at.port for at in found]) and _differ([at.path for at in found])):
        raise ValueError(f"{text!r}: expected ports from 1 to 254, each once, and a path for each")
    return found


def _are_ports(numbers: Sequence[int]) -> bool:
    return all(1 <= number <= 254 for number in numbers) and _differ(numbers)


def _differ(values: Sequence[object]) -> bool:
    return len(set(values)) == len(values)


def is_loopback(host: str) -> bool:
    """Whether a host's name or address is a loopback one; other names are not looked up."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _option(metavar: str, help: str, **limits: Any) -> Any:
    return Field(description=help, json_schema_extra={"metavar": metavar}, **limits)


def _as(read: Callable[[str], object]) -> AfterValidator:
    """Accepts a text that ``read`` can parse."""

    def check(value: str) -> str:
        read(value)
        return value

    return AfterValidator(check)


class Settings(BaseModel):
    """Defaults are those of simple_switch_grpc and serene-switch. A field with a description is an option of `serenectl
    up`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    switch: str = DEFAULT_SWITCH  # HOST:PORT of its P4Runtime server; for several switches NAME=HOST:PORT,...
    switch_ca: Annotated[str, _option("FILE", "TLS: the certificate authority (PEM) of the switch's certificate.")] = ""
    switch_cert: Annotated[str, _option("FILE", "TLS: the controller's certificate.")] = ""
    switch_key: Annotated[str, _option("FILE", "TLS: the key of --switch-cert.", validate_default=True)] = ""
    device_id: Annotated[int, _option("N", "P4Runtime device id.", ge=0, lt=2**64)] = 0
    ports: Annotated[str, _option("1-4", "Ports to which the switch floods ordinary traffic."), _as(port_numbers)] = (
        DEFAULT_PORTS
    )
    # The root's ports to the leaves are 1, 2, ... in their order.
    uplink: Annotated[
        int, _option("PORT", "With several switches: a leaf's port to the root.", ge=1, le=254, validate_default=True)
    ] = DEFAULT_UPLINK
    program: Annotated[
        str,
        _option(
            "NAME", f"The P4 program: {choices(VARIANTS)}, or a path to a .json. With --local {JUMBO} is the default: "
            "nothing limits a packet's size there.",
        ),
    ] = PLAIN  # fmt: skip
    slots: Annotated[
        int | None, _option("N", "Slots of the program; each holds as many values as a packet. 8192 by default.")
    ] = None
    election_id: Annotated[
        int, _option("N", "P4Runtime election id; the highest commands the switch.", ge=1, lt=2**128)
    ] = 1
    http: Annotated[str, _option("HOST:PORT", f"Address to listen at; outside loopback only with ${TOKEN}.")] = (
        DEFAULT_HTTP
    )
    socket: Annotated[
        str, _option("/PATH", "Also listen at this Unix socket; a background controller always does.")
    ] = ""
    wait: Annotated[
        float, _option("SECONDS", "Seconds to wait for the switch to answer.", gt=0, le=86400, allow_inf_nan=False)
    ] = 10.0
    gone_after: Annotated[
        float,
        _option(
            "SECONDS", "Seconds of silence before an evicted worker stops keeping the job alive.",
            ge=1, le=86400, allow_inf_nan=False,
        ),
    ] = 30.0  # fmt: skip
    udp_ports: Annotated[
        str,
        _option(
            "PORT:SWITCH:HOST,...",
            "Switch ports that are UDP sockets on loopback: the switch's and the program's UDP port, as 1:50001:51001.",
        ),
        _as(udp_port_numbers),
    ] = ""
    shm_ports: Annotated[
        str,
        _option("PORT:/PATH,...", "Switch ports that are memory shared with a program: the file, as 1:/run/port1."),
        _as(shm_port_paths),
    ] = ""
    grace_s: float = Field(default=5.0, ge=0)  # how many seconds a finished job's entries stay

    @field_validator("switch")
    @classmethod
    def _switch(cls, value: str) -> str:
        if not switches_of(value):
            host_and_port(value)
        return value

    @field_validator("switch_ca", "switch_cert", "switch_key")
    @classmethod
    def _tls_file(cls, value: str) -> str:
        try:
            return str(Path(value).resolve(strict=True)) if value and Path(value).read_bytes() else value
        except OSError as error:
            raise ValueError(f"cannot read {value!r}: {error.strerror}; expected a PEM file") from None

    @field_validator("switch_key")
    @classmethod
    def _whole_identity(cls, value: str, info: ValidationInfo) -> str:
        authority, certificate = info.data.get("switch_ca", ""), info.data.get("switch_cert", "")
        if bool(value) != bool(certificate):
            raise ValueError("--switch-cert and --switch-key must be given together")
        if value and not authority:
            raise ValueError("needs --switch-ca, which encrypts the connection")
        return value

    @field_validator("http")
    @classmethod
    def _http(cls, value: str) -> str:
        host, _ = host_and_port(value)
        if not is_loopback(host) and token() is None:
            raise ValueError(
                f"{value!r} is not a loopback address, so anybody there could command the switch: expected e.g. "
                f"{DEFAULT_HTTP}, or set a token in ${TOKEN}"
            )
        return value

    @field_validator("socket")
    @classmethod
    def _socket(cls, value: str) -> str:
        if value and not (os.path.isabs(value) and len(os.fsencode(value)) <= LONGEST_PATH):
            raise ValueError(f"{value!r}: expected an absolute path of at most {LONGEST_PATH} bytes")
        return value

    @field_validator("udp_ports", "shm_ports")
    @classmethod
    def _of_one_switch(cls, value: str, info: ValidationInfo) -> str:
        if value and cls._several(info):
            raise ValueError("expected with one switch only, not with several")
        return value

    @field_validator("program")
    @classmethod
    def _program(cls, value: str, info: ValidationInfo) -> str:
        try:
            chosen_program(value, None)
        except SereneError as error:
            raise ValueError(str(error)) from None
        if value != PLAIN and cls._several(info):
            raise ValueError(f"{value!r}: expected none with several switches, which run {choices(TREE)}")
        return value

    @field_validator("slots")
    @classmethod
    def _slots(cls, value: int | None, info: ValidationInfo) -> int | None:
        program = info.data.get("program")  # None where it is invalid itself
        try:
            if value is not None and program is not None:
                chosen_program(program, value)
        except SereneError as error:
            raise ValueError(str(error)) from None
        return value

    @field_validator("uplink")
    @classmethod
    def _uplink(cls, value: int, info: ValidationInfo) -> int:
        ports = info.data.get("ports")  # None where they are invalid themselves
        if cls._several(info) and ports is not None and value in port_numbers(ports):
            raise ValueError(f"{value} is one of the workers' --ports {ports}: expected another port")
        return value

    @staticmethod
    def _several(info: ValidationInfo) -> bool:
        return "=" in info.data.get("switch", "")

    @property
    def switches(self) -> list[NamedSwitch]:
        """The root, and the leaves in the order of their racks; empty with one switch."""
        return switches_of(self.switch)


def check_token() -> None:
    """Raises BadUsage if the environment's token is invalid."""
    with usage():
        token()


def settings(**given: object) -> Settings:
    """Checked settings. Raises BadUsage, which names the option."""
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        option = "--" + str(first["loc"][0]).replace("_", "-")
        if first["type"] == "value_error":
            raise BadUsage(f"{option}: {first['ctx']['error']}") from None
        raise BadUsage(f"{option}: {first['input']!r}: {first['msg']}") from None
