"""`serenectl doctor` on machines that lack something: what it finds, what it advises, and its exit status."""

from __future__ import annotations

import os
import socket
import subprocess
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


def found(what: str) -> Finding:
    return next(one for one in doctor.findings() if one.what == what)


def test_a_machine_that_has_all_it_needs(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for what in (
        "Serene",
        "Python",
        "C compiler",
        "Mininet",
        "kernel",
        "shared memory",
        "gloo's interface",
        "chromium",
    ):
        assert f"  {what} " in done.stdout
    assert "!!" not in done.stdout


def test_without_a_compiler_nothing_runs(tmp_path: Path) -> None:
    done = run(tmp_path, PATH=str(tmp_path))
    assert (done.returncode, done.stderr) == (1, "error: missing and required: C compiler\n")
    assert "!!  C compiler          none\n                        apt-get install gcc libc6-dev" in done.stdout


def test_the_compiler_is_the_one_that_will_be_used(tmp_path: Path) -> None:
    """The first of $CC, cc, gcc and clang that is there; $CC is a name, no command with options."""
    (tmp_path / "clang").symlink_to("/usr/bin/gcc")
    done = run(tmp_path, PATH=str(tmp_path), CC="gcc -m64")
    assert done.returncode == 0, done.stderr
    assert "ok  C compiler          clang " in done.stdout


def test_without_mininet(tmp_path: Path) -> None:
    """A path on which there is a compiler and nothing else."""
    for tool in ("cc", "as", "ld"):
        (tmp_path / tool).symlink_to(f"/usr/bin/{tool}")
    done = run(tmp_path, PATH=str(tmp_path))
    assert done.returncode == 0
    assert "missing: mininet" in done.stdout
    assert "scripts/setup installs it; 'make run-local' works without it" in done.stdout


@pytest.mark.parametrize(
    ("named", "mark", "text"),
    [
        ("lo", Mark.GOOD, "lo, as GLOO_SOCKET_IFNAME says"),
        ("eth77", Mark.ABSENT, "GLOO_SOCKET_IFNAME: no interface 'eth77'"),
    ],
)
def test_doctor_checks_gloo_socket_ifname(monkeypatch: pytest.MonkeyPatch, named: str, mark: Mark, text: str) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", named)
    one = found("gloo's interface")
    assert (one.mark, one.text) == (mark, text)
    assert mark is Mark.GOOD or one.advice.startswith("expected ")


def test_a_port_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setattr(doctor, "DEFAULT_SWITCH", address)
        monkeypatch.setattr(doctor, "DEFAULT_HTTP", "127.0.0.1:1")
        port = found("P4Runtime port")
    assert (port.mark, port.text) == (Mark.ABSENT, f"{address} is taken")
    assert "--switch HOST:PORT" in port.advice


def test_a_token_that_could_be_none_is_one_finding_among_others(tmp_path: Path) -> None:
    done = run(tmp_path, SERENE_TOKEN="short")
    assert (done.returncode, done.stderr) == (0, "")
    assert "controller          not asked\n                        $SERENE_TOKEN: expected 16 to 512" in done.stdout
    assert "  kernel " in done.stdout and "  P4Runtime port " in done.stdout


def test_files_of_processes_that_are_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = tmp_path / "serene"
    folder.mkdir()
    (folder / "controller-1.pid").write_text(f"{BEYOND_ALL}\n")
    (folder / "controller-2.pid").write_text(f"{os.getpid()}\n")
    assert found("pid files").advice == f"rm {folder}/controller-1.pid"
    for no_pid in ("", "none", "0", "-1", "9" * 30):
        (folder / "controller-1.pid").write_text(no_pid)
        assert found("pid files").advice == f"rm {folder}/controller-1.pid"
    (folder / "controller-1.pid").unlink()
    assert not [one for one in doctor.findings() if one.what == "pid files"]


@pytest.mark.skipif(os.geteuid() != 0, reason="interfaces take root")
@pytest.mark.parametrize("ends", [("s1-eth1", "h1-eth0"), ("s1root-eth1", "s1leaf1-eth33")])
def test_links_that_a_killed_run_has_left(
    ends: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over racks too, where no host's namespace takes them along."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with private_network():
        assert not [one for one in doctor.findings() if one.what == "interfaces"]
        subprocess.run(["ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1]], check=True)
        left = found("interfaces")
    assert set(left.text.partition(":")[0].split(", ")) == set(ends) and "mn -c" in left.advice


@pytest.mark.parametrize(
    ("mtu", "max_mtu", "merges", "mark", "words"),
    [
        (
            1500,
            65535,
            False,
            Mark.GOOD,
            "MTU 1500 for serene's packets 'ip link set eth9 mtu 3652' at least for serene_jumbo;",
        ),
        (1500, 1500, False, Mark.GOOD, "MTU 1500 for serene's packets serene-switch makes it promiscuous"),
        (9000, 9000, False, Mark.GOOD, "MTU 9000 for all programs' packets serene-switch makes it promiscuous"),
        (1300, 9000, False, Mark.ABSENT, "MTU 1300 for no program's packets 'ip link set eth9 mtu 3652' at least;"),
        (9000, 9000, True, Mark.ABSENT, "packets, merges packets (LRO) 'ethtool -K eth9 lro off'; serene-switch"),
    ],
)
def test_a_network_card_as_a_port(mtu: int, max_mtu: int, merges: bool, mark: Mark, words: str) -> None:
    """As ``ip`` describes a virtio card: a namespace of the test's own has none."""
    card = {"ifname": "eth9", "mtu": mtu, "max_mtu": max_mtu, "parentbus": "virtio", "parentdev": "virtio2"}
    (one,) = doctor.as_port(card, merges)
    advice = one.advice.removeprefix("as a switch's port: ")
    assert one.mark is mark and words in f"{one.text} {advice}"


@pytest.mark.skipif(os.geteuid() != 0, reason="interfaces take root")
def test_an_interface_made_of_a_card_hears_all_or_its_own() -> None:
    with private_network():
        for command in (
            "add lower type veth peer name other", "add own link lower type macvlan mode bridge",
            "add every link other type macvlan mode passthru",
        ):  # fmt: skip
            subprocess.run(["ip", "link", *command.split()], check=True)
        cards = found("network cards")
        assert [one.what for one in doctor.findings()].count("network cards") == 1
    assert cards.text == "own is macvlan (bridge): it receives only frames to its own address"
    assert "mode passthru" in cards.advice


def test_without_unshare_the_kernel_is_not_blamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_tool", lambda name: None if name == "unshare" else name)
    features = found("kernel features")
    assert (features.text, features.advice) == ("not checked: needs unshare", "apt-get install util-linux")


def test_no_place_for_files(tmp_path: Path) -> None:
    """As with a home directory that is not there: every finding is shown all the same."""
    obstacle = tmp_path / "file"
    obstacle.write_text("")
    done = run(obstacle)
    assert (done.returncode, done.stderr) == (0, "")
    assert " -  'serenectl up'      no writable folder\n" in done.stdout
    assert (
        f"cannot write logs and pid files to {obstacle}/serene: Not a directory; choose another folder with XDG_R"
        in done.stdout
    )
    done = run(tmp_path, XDG_CACHE_HOME=str(obstacle))
    assert (done.returncode, done.stderr) == (1, "error: missing and required: compiled programs\n")
    assert "!!  compiled programs   " in done.stdout and "XDG_CACHE_HOME=/PATH chooses another place" in done.stdout
