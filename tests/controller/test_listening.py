"""The controller's Unix socket and token: which clients are accepted, and which files remain."""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from serene.controller.commands import doctor
from serene.controller.http.client import ControllerClient, NoController, Rejected
from serene.controller.http.listeners import AddressInUse, tcp_listener, unix_listener
from serene.errors import SereneError
from serene.http import CONTROLLER
from serene.strategy import BSP
from serene.torch import opening
from serene.torch.opening import Controller
from tests.controller.processes import ControllerProcess, Start, SwitchProcess, serenectl
from tests.ports import some_port
from tests.runs import private_network

pytestmark = pytest.mark.targets("embedded")

TOKEN = "a-token-that-nobody-guesses"
get = partial(httpx.get, trust_env=False, timeout=120.0)


@pytest.fixture
def path() -> Iterator[Path]:
    """The path of a socket, in a folder that every user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="serene-test-"))
    folder.chmod(0o755)
    yield folder / "controller.sock"
    shutil.rmtree(folder)


def at(path: Path) -> ControllerClient:
    return ControllerClient(f"unix:{path}")


# -- the Unix socket -----------------------------------------------------------------------------------------


def test_unix_socket_serves_from_its_controllers_start_to_its_end(start: Start, path: Path) -> None:
    process = start("--socket", str(path))
    with at(path) as client:
        assert client.create_job(2, BSP()).job == 0
        assert client.status() == process.client.status()
        assert client.status().listening.socket == str(path)
    done = serenectl("status", controller=f"unix:{path}")
    assert done.returncode == 0 and "job 0: waiting" in done.stdout
    assert serenectl("status", "--controller", f"unix:{path}").stdout == done.stdout
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600
    if os.geteuid() == 0:  # who can be somebody else
        program = f"import socket; socket.socket(socket.AF_UNIX).connect({str(path)!r})"
        as_nobody = {"user": 65534, "cwd": "/", "capture_output": True, "text": True}
        tried = subprocess.run([sys.executable, "-S", "-c", program], **as_nobody)  # type: ignore[call-overload]
        assert "PermissionError" in tried.stderr

    process.kill()
    assert path.is_socket()
    second = start("--socket", str(path))
    with at(path) as client:
        assert client.status().listening == second.client.status().listening, "a killed controller's is replaced"
    path.unlink()  # by hand
    third = start("--socket", str(path), "--election-id", "2")
    assert second.stop() == 0
    with at(path) as client:
        assert client.status().listening.socket == str(path), "a controller removes no socket of another one"
    assert third.stop() == 0
    assert not path.exists()
    with at(path) as client, pytest.raises(NoController, match=f"no controller at unix:{path}"):
        client.status()


def test_process_group_creates_its_job_over_the_unix_socket(
    start: Start, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERENE_TOKEN", TOKEN)
    process = start("--socket", str(path))
    monkeypatch.setenv("SERENE_CONTROLLER", f"unix:{path}")
    access = Controller().create(2)
    assert [job.job for job in process.client.jobs()] == [access.job]
    monkeypatch.setenv("SERENE_TOKEN", "another-that-is-wrong")
    with pytest.raises(SereneError, match="wrong token: set SERENE_TOKEN to the controller's"):
        Controller().create(2)


def test_socket_not_yet_listening_is_not_replaced(path: Path) -> None:
    """Another process is between bind and listen."""
    with socket.socket(socket.AF_UNIX) as foreign:
        foreign.bind(str(path))
        with pytest.raises(AddressInUse, match="another process has it open"), unix_listener(str(path)):
            pass
        foreign.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))


def test_second_controller_starting_on_a_port_is_refused() -> None:
    """Before the first one listens, while it waits for its switch."""
    http = f"127.0.0.1:{some_port()}"
    with tcp_listener(http) as first:
        message = f"cannot listen on {http}: the controller with process id {os.getpid()} uses it; choose another port"
        with pytest.raises(AddressInUse, match=re.escape(message)), tcp_listener(http):
            pass
        first.listen()
    with tcp_listener(http):  # at once, when that one has gone
        pass
    with socket.socket() as other:  # no controller
        other.bind(("127.0.0.1", int(http.rpartition(":")[2])))
        other.listen()
        with pytest.raises(AddressInUse, match="Address already in use"), tcp_listener(http):
            pass


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_unix_listener_keeps_existing_non_socket_path(path: Path, kind: str) -> None:
    text = path.with_name("precious")
    text.write_text("precious")
    if kind == "file":
        text = text.rename(path)
    elif kind == "link":
        path.symlink_to(text)
    else:
        path.mkdir()
    message = f"cannot listen at {path}: the file there is not a socket"
    with pytest.raises(AddressInUse, match=re.escape(message)), unix_listener(str(path)):
        pass
    assert text.read_text() == "precious" and path.exists()
    missing = str(path.parent / "none" / "controller.sock")
    with pytest.raises(AddressInUse, match=r"controller\.sock: No such file or directory"), unix_listener(missing):
        pass


# -- the token -----------------------------------------------------------------------------------------------


MISSING = "this controller requires a token: set SERENE_TOKEN to the controller's token"
WRONG = "wrong token: set SERENE_TOKEN to the controller's token"


HEADERS: list[tuple[list[bytes], str]] = [
    ([], MISSING),
    ([b""], MISSING),
    ([b"Bearer"], MISSING),
    ([b"Basic " + TOKEN.encode()], MISSING),
    ([TOKEN.encode()], MISSING),
    ([b"Bearer " + TOKEN[:-1].encode()], WRONG),
    ([b"Bearer " + TOKEN.encode() + b"x"], WRONG),
    ([b"Bearer " + TOKEN.upper().encode()], WRONG),
    ([b"Bearer  " + TOKEN.encode()], WRONG),
    ([b"Bearer " + TOKEN.encode() + b", Bearer x"], WRONG),
    ([b"Bearer \xff\xfe"], WRONG),
    ([b"Bearer " + 30000 * b"x"], WRONG),
    ([b"Bearer wrong", b"Bearer " + TOKEN.encode()], WRONG),
]


def test_requests_without_the_token_are_refused(start: Start, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over TCP and the Unix socket, for every path."""
    monkeypatch.setenv("SERENE_TOKEN", TOKEN)
    guarded = start("--socket", str(path))
    for base, transport in ((guarded.url, None), ("http://localhost", httpx.HTTPTransport(uds=str(path)))):
        with httpx.Client(base_url=base, transport=transport, trust_env=False, timeout=120.0) as http:
            for given, message in HEADERS:
                headers = [(b"Authorization", value) for value in given]
                for asked in ("GET /v1/status", "POST /v1/jobs", "POST /v1/shutdown", "GET /no"):
                    method, at = asked.split()
                    answer = http.request(method, at, headers=headers, content=b"{}")
                    assert (answer.status_code, answer.json()) == (401, {"error": message}), (given, method, at)
                    assert answer.headers["www-authenticate"] == "Bearer"
    for name, other in (("Origin", "http://evil.example"), ("Host", "evil.example")):
        headers_ = {"Authorization": f"Bearer {TOKEN}", name: other}
        assert get(f"{guarded.url}/v1/status", headers=headers_).status_code == 403, "the token admits no other origin"
    assert guarded.client.jobs() == []


def test_controller_serves_only_requests_with_its_token(
    start: Start, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERENE_TOKEN", TOKEN)
    guarded = start("--socket", str(path), warm=False)  # its command line is what a user's would be
    for scheme in ("Bearer", "bearer"):
        headers = {"Authorization": f"{scheme} {TOKEN}"}
        assert get(f"{guarded.url}/metrics", headers=headers).status_code == 200
    assert serenectl("status", controller=guarded.url).returncode == 0
    monkeypatch.delenv("SERENE_TOKEN")
    done = serenectl("status", controller=guarded.url)
    assert (done.returncode, done.stderr) == (1, f"error: {MISSING}\n")
    monkeypatch.setattr(doctor, "DEFAULT_HTTP", guarded.url.removeprefix("http://"))
    (found,) = [one for one in doctor._ports() if one.what in ("controller", "HTTP port")]
    assert (found.mark, found.what, found.advice) == (doctor.Mark.ABSENT, "controller", MISSING)
    assert TOKEN not in guarded.log.read_text()
    assert TOKEN not in Path(f"/proc/{guarded.process.pid}/cmdline").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a network of its own")
def test_other_machines_need_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller listens on a non-loopback address, and accepts any host name."""
    with private_network():
        subprocess.run(["ip", "address", "add", "192.0.2.1/32", "dev", "lo"], check=True)
        switch = SwitchProcess("embedded", tmp_path / "switch.log")
        try:
            http = f"192.0.2.1:{some_port()}"
            refused = serenectl("up", "--foreground", "--switch", switch.grpc, "--http", http)
            assert refused.returncode == 2 and "or set a token in $SERENE_TOKEN" in refused.stderr
            monkeypatch.setenv("SERENE_TOKEN", TOKEN)
            process = ControllerProcess(switch, tmp_path / "controller.log", http=http)
            try:
                assert process.client.status().listening.http == http
                asked = {"Authorization": f"Bearer {TOKEN}", "Host": "switch.example:8559"}
                assert get(f"http://{http}/v1/status", headers=asked).status_code == 200
                asked["Origin"] = "http://evil.example"
                assert get(f"http://{http}/v1/status", headers=asked).status_code == 403
                with socket.create_connection(("192.0.2.1", int(http.rpartition(":")[2])), 30) as connection:
                    connection.sendall(b"GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n")
                    assert connection.recv(100).startswith(b"HTTP/1.1 401")
                monkeypatch.delenv("SERENE_TOKEN")
                with ControllerClient(process.url) as client, pytest.raises(Rejected, match=MISSING):
                    client.status()
            finally:
                assert process.stop() == 0
        finally:
            switch.stop()


def test_impossible_host_name_is_reported_as_no_controller() -> None:
    with ControllerClient(f"http://{'a' * 64}:1") as client, pytest.raises(NoController):
        client.status()


def test_silent_controller_is_reported_as_not_answering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that was stopped; for the commands and for ranks. None suggests starting another controller."""
    monkeypatch.setattr(opening, "HTTP_TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        monkeypatch.setenv(CONTROLLER, url)
        silent = re.escape(f"the controller at {url} did not answer within 0.2 s")
        with ControllerClient(timeout_s=0.2) as client, pytest.raises(NoController, match=silent):
            client.status()
        with ControllerClient(timeout_s=0.2) as client, pytest.raises(NoController, match=silent):
            next(client.events())
        with pytest.raises(SereneError, match=silent):
            opening.Controller().racks()


@pytest.mark.parametrize("command", ["status", "up", "watch"])
def test_another_http_server_is_not_taken_for_a_controller(command: str) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as other:
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        try:
            at = f"127.0.0.1:{other.server_port}"
            where = {"up": ("--http", at)}.get(command, ("--controller", f"http://{at}"))
            done = serenectl(command, *where)
        finally:
            other.shutdown()
            thread.join()
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: http://{at} answers, but is not a Serene controller of this version")
    assert done.stderr.count("\n") == 1
