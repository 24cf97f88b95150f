"""`serenectl doctor` on machines that lack something: what it finds, what it advises, and its exit status."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from serene.controller.commands import doctor
from serene.controller.commands.doctor import Finding, Mark
from tests.controller.processes import ROOT
from tests.runs import private_network
from tests.support.warm_process import run as run_warm

BEYOND_ALL = 1 << 23  # no process has such a number: Linux ends at 1 << 22


def run(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = ["-m", "serene.controller", "doctor"]
    return run_warm(command, ROOT, {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), **environment}, 120.0)


def among(findings: Iterable[Finding], what: str) -> Finding:
    return next(one for one in findings if one.what == what)


def test_doctor_finds_nothing_missing_on_a_complete_machine(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    parts = "Serene, Python, C compiler, Mininet, kernel, shared memory, gloo's interface, chromium, P4Runtime port"
    for what in parts.split(", "):
        assert f"  {what} " in done.stdout
    assert "!!" not in done.stdout


def test_doctor_fails_without_a_compiler(tmp_path: Path) -> None:
    done = run(tmp_path, PATH=str(tmp_path))
    assert (done.returncode, done.stderr) == (1, "error: missing and required: C compiler\n")
    assert "!!  C compiler          none\n                        apt-get install gcc libc6-dev" in done.stdout


def test_doctor_reports_a_missing_folder_and_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For example a missing home directory: all other findings are still shown."""
    obstacle = tmp_path / "file"
    obstacle.write_text("")
    done = run(obstacle)
    assert (done.returncode, done.stderr) == (0, "")
    assert " -  'serenectl up'      no writable folder\n" in done.stdout
    reason = f"cannot write logs and pid files to {obstacle}/serene: Not a directory; choose another folder with XDG_R"
    assert reason in done.stdout
    monkeypatch.setenv("XDG_CACHE_HOME", str(obstacle))
    cache = doctor._cache()
    assert (cache.mark, cache.advice) == (Mark.MISSING, "XDG_CACHE_HOME=/PATH chooses another place")


def test_doctor_names_the_compiler_that_will_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of $CC, cc, gcc and clang that exists; $CC is a name, not a command with options."""
    (tmp_path / "clang").symlink_to("/usr/bin/gcc")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "gcc -m64")
    found = doctor._compiler()
    assert found.mark is Mark.GOOD and found.text.startswith("clang ")


def test_doctor_reports_a_missing_mininet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_tool", lambda name: None if name == "mn" else name)
    found = among(doctor._mininet(), "Mininet")
    assert (found.mark, found.text) == (Mark.ABSENT, "missing: mininet")
    assert found.advice == "scripts/setup installs it; 'make run-local' works without it"


@pytest.mark.parametrize(
    ("named", "mark", "text"),
    [
        ("lo", Mark.GOOD, "lo, from GLOO_SOCKET_IFNAME"),
        ("eth77", Mark.ABSENT, "GLOO_SOCKET_IFNAME: no interface 'eth77'"),
    ],
)
def test_doctor_checks_gloo_socket_ifname(monkeypatch: pytest.MonkeyPatch, named: str, mark: Mark, text: str) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", named)
    one = doctor._gloo()
    assert (one.mark, one.text) == (mark, text)
    assert mark is Mark.GOOD or one.advice.startswith("expected ")


def test_doctor_reports_a_taken_port_and_a_bad_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERENE_TOKEN", "short")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setattr(doctor, "DEFAULT_SWITCH", address)
        monkeypatch.setattr(doctor, "DEFAULT_HTTP", "127.0.0.1:1")
        found = list(doctor._ports())
    asked, port = among(found, "controller"), among(found, "P4Runtime port")
    assert asked.text == "not asked" and asked.advice.startswith("$SERENE_TOKEN: expected 16 to 512")
    assert (port.mark, port.text) == (Mark.ABSENT, f"{address} is taken")
    assert "--switch HOST:PORT" in port.advice


def test_doctor_advises_removing_pid_files_of_dead_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = tmp_path / "serene"
    folder.mkdir()
    (folder / "controller-2.pid").write_text(f"{os.getpid()}\n")
    for no_pid in (f"{BEYOND_ALL}\n", "", "none", "0", "-1", "9" * 30):
        (folder / "controller-1.pid").write_text(no_pid)
        assert among(doctor._leftovers(), "pid files").advice == f"rm {folder}/controller-1.pid"
    (folder / "controller-1.pid").unlink()
    assert not [one for one in doctor._leftovers() if one.what == "pid files"]


@pytest.mark.skipif(os.geteuid() != 0, reason="interfaces take root")
@pytest.mark.parametrize("ends", [("s1-eth1", "h1-eth0"), ("s1root-eth1", "s1leaf1-eth33")])
def test_doctor_reports_links_left_by_a_killed_run(
    ends: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over racks too, where no host's namespace removes them."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with private_network():
        assert not [one for one in doctor._leftovers() if one.what == "interfaces"]
        subprocess.run(["ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1]], check=True)
        left = among(doctor._leftovers(), "interfaces")
    assert set(left.text.partition(":")[0].split(", ")) == set(ends) and "mn -c" in left.advice


@pytest.mark.parametrize(
    ("mtu", "max_mtu", "merges", "mark", "words"),
    [
        (1500, 65535, False, Mark.GOOD, "serene's packets 'ip link set eth9 mtu 3652' at least for serene_jumbo;"),
        (1500, 1500, False, Mark.GOOD, "MTU 1500 for serene's packets serene-switch makes it promiscuous"),
        (9000, 9000, False, Mark.GOOD, "MTU 9000 for all programs' packets serene-switch makes it promiscuous"),
        (1300, 9000, False, Mark.ABSENT, "MTU 1300 for no program's packets 'ip link set eth9 mtu 3652' at least;"),
        (9000, 9000, True, Mark.ABSENT, "packets, merges packets (LRO) 'ethtool -K eth9 lro off'; serene-switch"),
    ],
)
def test_doctor_judges_network_cards_as_switch_ports(
    mtu: int, max_mtu: int, merges: bool, mark: Mark, words: str
) -> None:
    """The card is described as ``ip`` describes a virtio card: the test's own namespace has none."""
    card = {"ifname": "eth9", "mtu": mtu, "max_mtu": max_mtu, "parentbus": "virtio", "parentdev": "virtio2"}
    (one,) = doctor.as_port(card, merges)
    advice = one.advice.removeprefix("as a switch's port: ")
    assert one.mark is mark and words in f"{one.text} {advice}"


@pytest.mark.skipif(os.geteuid() != 0, reason="interfaces take root")
def test_doctor_says_which_frames_derived_interfaces_receive() -> None:
    with private_network():
        for command in (
            "add lower type veth peer name other", "add own link lower type macvlan mode bridge",
            "add every link other type macvlan mode passthru",
        ):  # fmt: skip
            subprocess.run(["ip", "link", *command.split()], check=True)
        (cards,) = doctor._cards()
    assert cards.text == "own is macvlan (bridge): it receives only frames to its own address"
    assert "mode passthru" in cards.advice


def test_doctor_without_unshare_does_not_judge_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_tool", lambda name: None if name == "unshare" else name)
    features = among(doctor._kernel(), "kernel features")
    assert (features.text, features.advice) == ("not checked: needs unshare", "apt-get install util-linux")
