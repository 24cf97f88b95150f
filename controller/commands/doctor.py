"""``serenectl doctor``: the programs and permissions that Serene uses, problems on this machine, and how to fix
them."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import platform
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from serene import distribution
from serene.controller.commands import background
from serene.controller.commands.local import shared_memory_works
from serene.controller.http.client import ControllerClient, NoController, NotAController, Rejected
from serene.controller.settings import DEFAULT_SWITCH, host_and_port
from serene.errors import SereneError, choices, plural
from serene.http import DEFAULT_HTTP
from serene.native.build import compiler
from serene.native.cache import safe_cache
from serene.native.errors import CompilerMissing, UnsafeCache
from serene.program import Program
from serene.wire import ENCAPSULATION_BYTES, HEADER, SERENE_UDP_PORT, SWITCH_IP

OLDEST_PYTHON = (3, 10)
IP_BYTES = ENCAPSULATION_BYTES - 14 + HEADER.itemsize  # of a PUSH, in addition to its values
PROBE_TIMEOUT_S = 20
# Commands for the probe's own network namespace, which ends with the probe.
VETH = "ip link add probe0 type veth peer name probe1"
RATE = f"{VETH} && tc qdisc add dev probe0 root handle 5: htb default 1"


class Mark(Enum):
    """How a finding counts. MISSING: nothing runs without it, and the command ends with status 1. ABSENT: only a part
    of Serene needs it."""

    GOOD = "ok"
    ABSENT = "-"
    MISSING = "!!"


@dataclass(frozen=True)
class Finding:
    """A check, its result, and advice."""

    mark: Mark
    what: str
    text: str
    advice: str = ""


def finding_if(good: bool, what: str, text: str, otherwise: str, advice: str, mark: Mark = Mark.ABSENT) -> Finding:
    """A finding with ``text`` if ``good``, else with ``otherwise``, this mark and advice."""
    return Finding(Mark.GOOD, what, text) if good else Finding(mark, what, otherwise, advice)


def print_findings() -> None:
    """Prints each finding in one line, its advice in a second. Raises SereneError if nothing can run."""
    found = list(findings())
    for one in found:
        print(f"{one.mark.value:>2}  {one.what:<18}  {one.text}")
        if one.advice:
            print(f"{'':24}{one.advice}")
    missing = [one.what for one in found if one.mark is Mark.MISSING]
    if missing:
        raise SereneError(f"missing and required: {' and '.join(missing)}")


def findings() -> Iterator[Finding]:
    """All findings, in the order in which they are shown."""
    yield from _versions()
    yield _compiler()
    yield _cache()
    yield from _mininet()
    yield from _kernel()
    yield from _cards()
    yield _memory()
    yield _gloo()
    yield from _optional()
    yield from _ports()
    yield from _leftovers()


def _versions() -> Iterator[Finding]:
    yield Finding(Mark.GOOD, "Serene", f"{distribution.version()}, in {distribution.PACKAGE.parent}")
    python = platform.python_version()
    good = tuple(int(part) for part in platform.python_version_tuple()[:2]) >= OLDEST_PYTHON
    yield finding_if(good, "Python", python, python, "install Python 3.10 or later", Mark.MISSING)
    for package, use in (("torch", "training, serene.torch"), ("matplotlib", "pictures"), ("scapy", "studies, tests")):
        try:
            yield Finding(Mark.GOOD, package, version(package))
        except PackageNotFoundError:
            advice = f"scripts/setup, or {distribution.to_install('studies')}"
            yield Finding(Mark.ABSENT, package, f"not installed ({use})", advice)


def _compiler() -> Finding:
    try:
        cc = compiler()
    except CompilerMissing:
        advice = "apt-get install gcc libc6-dev: the embedded switch and the workers' fast path are compiled"
        return Finding(Mark.MISSING, "C compiler", "none", advice)
    version_line, headers = _first_line([cc, "--version"]), Path("/usr/include/stdio.h").exists()
    otherwise, advice = f"{version_line}; libc's headers are missing", "apt-get install libc6-dev"
    return finding_if(headers, "C compiler", version_line, otherwise, advice, Mark.MISSING)


def _cache() -> Finding:
    """The folder of compiled programs, which is made if necessary."""
    try:
        return Finding(Mark.GOOD, "compiled programs", f"in {safe_cache()}")
    except UnsafeCache as error:
        return Finding(Mark.MISSING, "compiled programs", "no safe folder", str(error))
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home directory
        return Finding(Mark.MISSING, "compiled programs", str(error), "XDG_CACHE_HOME=/PATH chooses another place")


def _mininet() -> Iterator[Finding]:
    local = "'make run-local' works without it"
    if os.geteuid() == 0:
        yield Finding(Mark.GOOD, "root", "yes")
    elif shutil.which("sudo"):
        yield Finding(Mark.ABSENT, "root", "no, but sudo is there", f"'make run-mininet' uses sudo; {local}")
    else:
        yield Finding(Mark.ABSENT, "root", "no, and no sudo", f"Mininet needs root; {local}")
    tools = {"mn": "mininet", "ip": "iproute2", "ethtool": "ethtool", "ping": "iputils-ping", "sysctl": "procps"}
    lacking = [package for tool, package in tools.items() if not _tool(tool)]
    if not lacking and importlib.util.find_spec("mininet") is None:
        advice = "this environment hides Debian's packages; scripts/setup creates one that includes them"
        yield Finding(Mark.ABSENT, "Mininet", "this Python cannot import it", advice)
    elif lacking:
        yield Finding(Mark.ABSENT, "Mininet", f"missing: {', '.join(lacking)}", f"scripts/setup installs it; {local}")
    else:
        yield Finding(Mark.GOOD, "Mininet", _first_line(["mn", "--version"]))


def _kernel() -> Iterator[Finding]:
    yield Finding(Mark.GOOD, "kernel", platform.release())
    if not _tool("unshare"):
        yield Finding(Mark.ABSENT, "kernel features", "not checked: needs unshare", "apt-get install util-linux")
        return
    if os.geteuid() != 0:
        yield Finding(Mark.ABSENT, "kernel features", "not checked: needs root", "sudo .venv/bin/serenectl doctor")
        return
    for what, probe, use in (
        ("namespaces", "true", "Mininet"),
        ("virtual links", VETH, "Mininet"),
        ("link rates", RATE, "LINK_MBIT"),
    ):
        trouble = _trouble(["unshare", "--net", "--pid", "--fork", "sh", "-c", probe])
        advice = f"{use} needs it: use a kernel with this feature, or a privileged container (--privileged)"
        yield finding_if(trouble is None, what, "yes", trouble or "", advice)


def _cards() -> Iterator[Finding]:
    """Network cards, and interfaces made of one, as ports of a switch; docs/switches.md lists tested ones."""
    ip = _tool("ip")
    if ip is None:
        yield Finding(Mark.ABSENT, "network cards", "not checked: needs ip", "apt-get install iproute2")
        return
    done = subprocess.run([ip, "-json", "-details", "link"], capture_output=True, text=True, check=False)
    for link in filter(None, json.loads(done.stdout or "[]")):
        yield from as_port(link, _merges(link["ifname"]))


def as_port(link: dict[str, Any], merges: bool) -> Iterator[Finding]:
    """The settings that an interface lacks as a switch's port. link: as ``ip -json -details link`` describes it;
    merges: whether the card merges the packets that it receives (LRO)."""
    name, mtu, most = link["ifname"], int(link["mtu"]), int(link.get("max_mtu") or 0)
    made = link.get("linkinfo", {})
    mode = made.get("info_data", {}).get("mode", "")
    if made.get("info_kind") in ("macvlan", "ipvlan") and mode != "passthru":
        text = f"{name} is {made['info_kind']} ({mode}): it receives only frames to its own address"
        advice = "as a switch's port it has to be 'type macvlan mode passthru'"
        yield Finding(Mark.ABSENT, "network cards", text, advice)
        return
    if "parentdev" not in link:  # a virtual interface
        return
    plain, jumbo = (IP_BYTES + 4 * Program.load(program).lanes for program in ("serene", "serene_jumbo"))
    lacks = []
    if mtu < jumbo:
        wanted = plain if most and most < jumbo else jumbo
        if mtu < wanted:
            lacks.append(f"'ip link set {name} mtu {wanted}' at least" + (" for serene_jumbo" if mtu >= plain else ""))
    if merges:
        lacks.append(f"'ethtool -K {name} lro off'")
    takes = "no program's packets" if mtu < plain else "serene's packets" if mtu < jumbo else "all programs' packets"
    hint = "serene-switch makes it promiscuous; in a virtual machine the host must allow it"
    mark = Mark.ABSENT if mtu < plain or merges else Mark.GOOD
    text = f"{name}, MTU {mtu} for {takes}{', merges packets (LRO)' if merges else ''}"
    yield Finding(mark, "network cards", text, "as a switch's port: " + "; ".join([*lacks, hint]))


def _merges(name: str) -> bool:
    ethtool = _tool("ethtool")
    if ethtool is None:
        return False
    done = subprocess.run([ethtool, "-k", name], capture_output=True, text=True, check=False)
    return bool(re.search(r"^large-receive-offload: on", done.stdout, re.MULTILINE))


def _memory() -> Finding:
    none = "this kernel or sandbox has no shared memory (memfd_create)"
    advice = "'serenectl up --local' then uses UDP sockets, which are slower"
    return finding_if(shared_memory_works(), "shared memory", "for the ports of 'serenectl up --local'", none, advice)


def _gloo() -> Finding:
    """The network interface that gloo uses: the process group's traffic beside the switch."""
    named = os.environ.get("GLOO_SOCKET_IFNAME")
    there = [name for _, name in socket.if_nameindex()]
    if named and named not in there:
        advice = f"expected {choices(there)}, or unset it to use the interface towards the switch"
        return Finding(Mark.ABSENT, "gloo's interface", f"GLOO_SOCKET_IFNAME: no interface {named!r}", advice)
    if named:
        return Finding(Mark.GOOD, "gloo's interface", f"{named}, from GLOO_SOCKET_IFNAME")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((SWITCH_IP, SERENE_UDP_PORT))
        except OSError:
            return Finding(Mark.GOOD, "gloo's interface", f"loopback: no route leads to a switch at {SWITCH_IP}")
        return Finding(Mark.GOOD, "gloo's interface", f"address {probe.getsockname()[0]}, on the route to {SWITCH_IP}")


def _optional() -> Iterator[Finding]:
    for command, use in (
        ("simple_switch_grpc", "TARGET=bmv2; docs/switches.md names its source"),
        ("p4c-bm2-ss", "'make p4', to change the data plane; docs/switches.md names its source"),
        ("chromium", "the tests of the controller's page; scripts/setup --browser"),
    ):
        path = shutil.which(command)
        yield finding_if(path is not None, command, path or "", "not installed", use)


def _ports() -> Iterator[Finding]:
    url = f"http://{DEFAULT_HTTP}"
    try:
        with ControllerClient(url, timeout_s=5) as client:
            status = client.status()
        away = "" if status.switch.connected else f", but its switch is not connected: {status.switch.trouble}"
        yield Finding(Mark.GOOD, "controller", f"runs at {url} with {plural(len(status.jobs), 'job')}{away}")
        return
    except Rejected as refusal:
        if refusal.status == HTTPStatus.UNAUTHORIZED:
            yield Finding(Mark.ABSENT, "controller", f"runs at {url}; this shell does not have its token", str(refusal))
            return
    except (NoController, NotAController):
        pass
    except SereneError as trouble:  # such as an invalid SERENE_TOKEN
        yield Finding(Mark.ABSENT, "controller", "not asked", str(trouble))
    for what, address, option in (
        ("HTTP port", DEFAULT_HTTP, "--http"),
        ("P4Runtime port", DEFAULT_SWITCH, "--switch"),
    ):
        advice = f"choose another with 'serenectl up {option} HOST:PORT'; 'ss -ltnp' shows the owner"
        yield finding_if(not _listens(address), what, f"{address} is free", f"{address} is taken", advice)


def _leftovers() -> Iterator[Finding]:
    links = [name for _, name in socket.if_nameindex() if re.fullmatch(r"[\w.-]+-eth\d+", name)]  # as 'mn -c'
    if links:
        shown = ", ".join(links[:4]) + (" ..." if len(links) > 4 else "")
        yield Finding(
            Mark.ABSENT, "interfaces", f"{shown}: from a running or crashed run", "if no run is active: 'sudo mn -c'"
        )
    try:
        dead = [path for path in background.folder().glob("*.pid") if not _alive(path)]
    except background.NoFolder as error:
        dead = []
        yield Finding(Mark.ABSENT, "'serenectl up'", "no writable folder", str(error))
    if dead:
        yield Finding(Mark.ABSENT, "pid files", f"left by dead processes: {_names(dead)}", f"rm {_names(dead)}")
    unfinished = sorted(Path("runs").glob(".run-*")) if Path("runs").is_dir() else []
    if unfinished:
        advice = f"if no run is active: rm -r {_names(unfinished)}"
        yield Finding(Mark.ABSENT, "unfinished runs", f"{len(unfinished)} in runs/", advice)
    if not (links or dead or unfinished):
        yield Finding(Mark.GOOD, "leftovers", "none")


def _names(paths: list[Path]) -> str:
    return " ".join(str(path) for path in paths)


def _alive(pid_file: Path) -> bool:
    """Whether the process that a file names is running."""
    try:
        pid = int(pid_file.read_text())
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ValueError, OSError, OverflowError):
        return False
    return pid > 0  # another number means a group of processes


def _tool(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def _listens(address: str) -> bool:
    with socket.socket() as probe, contextlib.suppress(OSError):
        probe.settimeout(5)
        return probe.connect_ex(host_and_port(address)) == 0
    return False


def _first_line(command: list[str]) -> str:
    """The first line that a command prints. Some print their version to stderr."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{command[0]}: {error}"
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0] if lines else f"{command[0]} prints no version"


def _trouble(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no"])[-1]
