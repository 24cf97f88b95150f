"""The embedded switch of `serenectl up --local`: a process of its own, whose ports are UDP sockets on loopback.

It goes on when the controller dies, as any switch does. The next `serenectl up --local` finds it by a file that is
locked as long as the switch lives, and `serenectl down` stops it.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from controller.commands.background import folder, last_error
from controller.settings import UdpPort, host_and_port, is_loopback
from serene.errors import SereneError
from serene.spawn import module

FIRST_UDP_PORT, LAST_UDP_PORT = 24200, 32000  # below those that Linux gives to outgoing connections
START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 10.0


class NoLocalSwitch(SereneError):
    """The switch of `serenectl up --local` could not be started."""


def start(address: str, ports: Sequence[int]) -> tuple[list[UdpPort], bool]:
    """The switch whose P4Runtime server is at ``address``; its ports, and whether it was started now.

    Raises NoLocalSwitch.
    """
    host, grpc_port = host_and_port(address)
    if not is_loopback(host):
        raise NoLocalSwitch(f"--switch {address}: expected an address of loopback with --local")
    record = _record(address)
    with record.open("a+") as file:
        there = _of_the_living(file)
        if there is not None:
            return there[1], False
        if _listens(host, grpc_port):
            record.unlink()
            raise NoLocalSwitch(
                f"something listens at {address} already: if it is a switch, leave --local out, or choose another "
                "address with --switch"
            )
        chosen = _free_udp_ports(ports)
        log = record.with_suffix(".log")
        command = module("serene.switch.cli", "--no-p4", "--device-id", "0")
        command += [f"-i{at.port}@udp:{at.switch}:{at.host}" for at in chosen]
        with log.open("w") as out:
            process = subprocess.Popen(
                [*command, "--", "--grpc-server-addr", address, "--cpu-port", "255"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                pass_fds=[file.fileno()],  # so it has the lock from now on
            )
        file.truncate(0)
        json.dump([process.pid, [[at.port, at.switch, at.host] for at in chosen]], file)
        file.flush()
    end = time.monotonic() + START_TIMEOUT_S
    while not _listens(host, grpc_port):
        if process.poll() is not None:
            record.unlink()
            raise NoLocalSwitch(last_error(log, "the switch"))
        if time.monotonic() > end:
            process.kill()
            raise NoLocalSwitch(f"the switch did not listen within {START_TIMEOUT_S:g} s; its log: {log}")
        time.sleep(0.02)
    return chosen, True


def stop(address: str) -> bool:
    """Ends the switch at ``address``, if `start` made it; whether there was one."""
    record = _record(address)
    if not record.exists():
        return False
    with record.open("a+") as file:
        there = _of_the_living(file)
        if there is not None:
            os.kill(there[0], signal.SIGTERM)
            end = time.monotonic() + STOP_TIMEOUT_S
            while _of_the_living(file) is not None:
                if time.monotonic() > end:
                    os.kill(there[0], signal.SIGKILL)
                time.sleep(0.02)
        record.unlink()
        return there is not None


def _record(address: str) -> Path:
    return folder() / f"switch-{address.rpartition(':')[2]}.json"


def _of_the_living(file: IO[str]) -> tuple[int, list[UdpPort]] | None:
    """What the file says, if the switch that it is about lives; else this process has its lock now."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        pid, ports = json.load(file)
        return int(pid), [UdpPort(*port) for port in ports]
    return None


def _free_udp_ports(ports: Sequence[int]) -> list[UdpPort]:
    found: list[int] = []
    for number in range(FIRST_UDP_PORT, LAST_UDP_PORT):
        if len(found) == 2 * len(ports):
            break
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(("127.0.0.1", number))
            except OSError:
                continue
            found.append(number)
    return [UdpPort(port, found[2 * i], found[2 * i + 1]) for i, port in enumerate(ports)]


def _listens(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0
