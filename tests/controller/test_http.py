"""The HTTP interface under hostile pages, malformed requests, floods and listeners that do not read."""

from __future__ import annotations

import json
import selectors
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serene.controller.http.client import ControllerClient
from serene.controller.http.connections import MOST_CONNECTIONS
from serene.report import Facts
from serene.strategy import ASP, BSP, SSP
from serene.wire import Op
from tests.controller.hosts import Host
from tests.controller.processes import ControllerProcess, metrics, report, resident_mb, started, until
from tests.support.golden import section

TABLE = Path(__file__).with_name("requests.txt")


@pytest.fixture(scope="module")
def warm() -> bool:
    return False


@pytest.fixture
def http(client: ControllerClient) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=client.url, trust_env=False, timeout=120.0) as plain:
        yield plain


pytestmark = pytest.mark.targets("embedded")  # what is tested never reaches the switch


def connect(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname or "", parts.port or 0), 30)


# -- who may ask ---------------------------------------------------------------------------------------------

COMMANDS = [
    ("POST", "/v1/jobs"),
    ("DELETE", "/v1/jobs/0"),
    ("PUT", "/v1/jobs/0/strategy"),
    ("PUT", "/v1/jobs/0/automatic"),
    ("DELETE", "/v1/jobs/0/automatic"),
    ("PUT", "/v1/jobs/0/workers/0/evicted"),
    ("DELETE", "/v1/jobs/0/workers/0/evicted"),
    ("POST", "/v1/shutdown"),
    ("GET", "/v1/status"),
]


@pytest.mark.parametrize(("headers", "message"), section(TABLE, "headers of another origin"))
def test_requests_from_pages_of_other_origins_are_refused(
    client: ControllerClient, http: httpx.Client, headers: str, message: str
) -> None:
    """As browsers send them: content types that need no preflight request, and names that resolve to loopback."""
    client.create_job(1, BSP())
    host = client.url.removeprefix("http://")
    given = json.loads(headers.replace("HOST", host).replace("PORT", host.rpartition(":")[2]))
    for method, path in COMMANDS:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json"):
            body = json.dumps({"workers": 1}) if path == "/v1/jobs" else None
            answer = http.request(method, path, content=body, headers={"Content-Type": kind, **given})
            assert answer.status_code == 403, (method, path)
            assert answer.json()["error"].startswith(message)
            assert not [name for name in answer.headers if name.startswith("access-control")]
    assert [job.state for job in client.jobs()] == ["waiting"], "nothing has happened"


@pytest.mark.parametrize(("lines", "status"), section(TABLE, "head of a request"))
def test_ambiguous_host_and_origin_headers_are_refused(client: ControllerClient, lines: str, status: str) -> None:
    """lines: of the head, with its first one only if that is another."""
    head = lines if lines.startswith("GET ") else f"GET /v1/status HTTP/1.1\r\n{lines}"
    with connect(client.url) as connection:
        connection.sendall(f"{head}\r\n\r\n".encode())
        assert first_line(connection).split()[1] == status.encode()


def test_own_origin_and_tunnelled_requests_are_accepted(client: ControllerClient, http: httpx.Client) -> None:
    own = {"Origin": client.url, "Sec-Fetch-Site": "same-origin"}
    assert http.get("/v1/status", headers=own).status_code == 200
    assert http.get("/v1/status", headers={"Host": "localhost:9000"}).status_code == 200
    assert http.get("/v1/status", headers={"Host": "[::1]:9000"}).status_code == 200
    assert http.get("/v1/status", headers={"Sec-Fetch-Site": "none"}).status_code == 200, "typed into the address bar"


def test_body_of_a_simple_content_type_is_not_read_as_json(client: ControllerClient, http: httpx.Client) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        assert http.post("/v1/jobs", content=b'{"workers": 1}', headers={"Content-Type": kind}).status_code == 422
    assert client.jobs() == []


# -- how much ------------------------------------------------------------------------------------------------


def first_line(connection: socket.socket) -> bytes:
    with connection.makefile("rb") as answer:
        return answer.readline()


def taken(connection: socket.socket, part: bytes, most: int) -> int:
    """How many times a part could be sent before the controller hung up."""
    for sent in range(most):
        try:
            connection.sendall(part)
        except OSError:
            return sent
    return most


@pytest.mark.parametrize(
    "head",
    ["Content-Length: 300000000", f"Content-Length: {5000 * '9'}", "Transfer-Encoding: chunked"],
    ids=["long", "longer", "chunked"],
)
def test_endless_body_is_not_read(controller: ControllerProcess, client: ControllerClient, head: str) -> None:
    before = resident_mb(controller)
    with connect(client.url) as connection:
        connection.sendall(f"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n".encode())
        part = bytes(1 << 20)
        sent = taken(connection, part if "Length" in head else b"100000\r\n" + part + b"\r\n", 300)
        assert sent < 100, "most of it is not taken"
    assert resident_mb(controller) < before + 30
    assert client.jobs() == []


def test_oversized_http_body_gets_status_413(client: ControllerClient, http: httpx.Client) -> None:
    answer = http.post("/v1/jobs", content=b" " * 65537, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()) == (413, {"error": "the body exceeds 65536 bytes"})
    with connect(client.url) as connection:
        head = "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head.encode() + b"10001\r\n" + bytes(65537) + b"\r\n")
        assert first_line(connection).startswith(b"HTTP/1.1 413")


def test_request_headers_are_limited_in_size(controller: ControllerProcess, client: ControllerClient) -> None:
    before = resident_mb(controller)
    with connect(client.url) as connection:
        connection.sendall(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n")
        assert taken(connection, b"X: " + b"a" * (1 << 20) + b"\r\n", 100) < 50
    assert resident_mb(controller) < before + 30


def test_number_of_http_connections_is_limited(client: ControllerClient, http: httpx.Client) -> None:
    """However many are opened before one of them sends a request."""
    with ExitStack() as open_:
        opened = [open_.enter_context(connect(client.url)) for _ in range(MOST_CONNECTIONS + 40)]
        watched = selectors.DefaultSelector()
        for connection in opened:
            watched.register(connection, selectors.EVENT_READ)

        def turned_away() -> list[bytes]:
            there = [key.fileobj for key, _ in watched.select(0)]
            return [first_line_unread(one) for one in there if isinstance(one, socket.socket)]

        until(lambda: len(turned_away()) >= 40, "those above the number are turned away")
        assert set(turned_away()) <= {b"HTTP/1.1 503", b""}
        assert b"HTTP/1.1 503" in turned_away()

    def room() -> bool:
        with suppress(httpx.TransportError):  # one that is turned away may not come as far as its answer
            return http.get("/v1/status").status_code == 200
        return False

    until(room, "whoever ends leaves its place")


SWAPS = 600


def test_event_listener_that_does_not_read_costs_little_memory(
    controller: ControllerProcess, client: ControllerClient, http: httpx.Client
) -> None:
    for job in range(8):
        client.create_job(32, BSP(), job=job)
    size = len(http.get("/v1/status").content)
    with connect(client.url) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert first_line_unread(connection)
        for _ in range(20):  # the interpreter's own growth is over
            client.set_strategy(0, ASP())
        before = resident_mb(controller)
        for step in range(SWAPS):  # each wakes the stream up, and a status follows
            client.set_strategy(0, SSP(1 + step % 9))
        assert resident_mb(controller) < before + 20, f"{SWAPS * size / 1e6:.0f} MB were not read"
    assert client.status().jobs[0].strategy == SSP(1 + (SWAPS - 1) % 9)


def first_line_unread(connection: socket.socket) -> bytes:
    return connection.recv(12, socket.MSG_PEEK)


def test_number_of_event_streams_is_limited(client: ControllerClient, http: httpx.Client) -> None:
    opened = []
    try:
        for _ in range(32):
            opened.append(connect(client.url))
            opened[-1].sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert first_line_unread(opened[-1]) == b"HTTP/1.1 200"

        def one_too_many() -> bool:
            with http.stream("GET", "/v1/events") as answer:
                return answer.status_code == 503

        until(one_too_many, "the next one is turned away")
    finally:
        for connection in opened:
            connection.close()

    def room() -> bool:
        with http.stream("GET", "/v1/events") as answer:
            return answer.status_code == 200

    until(room, "whoever ends leaves its place")


# -- nonsense ------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(["workers", "strategy", "job", "scale", "limit", "name", "parameters", "staleness", "k"])
NAMES = st.sampled_from(["bsp", "ssp", "asp", "quorum", "mixed", "dssp", "evict", "/tmp/x.py:X", "\0.py:X"])
BODIES = st.dictionaries(KEYS, NAMES | JSON | st.dictionaries(KEYS, NAMES | JSON, max_size=3), max_size=4) | JSON
SEGMENT = st.integers().map(str) | st.text(max_size=6).map(lambda text: quote(text, safe="")) | st.just("0")


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(["GET", "PUT", "POST", "DELETE", "PATCH"]),
    st.sampled_from(["", "/strategy", "/automatic", "/workers/{}/evicted", "/explanation?worker={}"]),
    SEGMENT,
    SEGMENT,
    BODIES,
)
def test_random_requests_never_get_a_server_error(
    http: httpx.Client, method: str, rest: str, job: str, worker: str, body: object
) -> None:
    """Whatever a request contains: no status 500, and every error has a text."""
    paths = [f"/v1/jobs/{job}{rest.format(worker)}", "/v1/jobs"]
    content = json.dumps(body).encode()
    for path in paths:
        answer = http.request(method, path, content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code < 500, (answer.status_code, answer.text)
        if answer.is_error:
            assert isinstance(answer.json()["error"], str)


@pytest.mark.parametrize(("request_", "expected"), section(TABLE, "request to a controller with a job of 2 workers"))
def test_bad_request_is_rejected_with_a_reason(
    client: ControllerClient, http: httpx.Client, request_: str, expected: str
) -> None:
    client.create_job(2, BSP())
    method, path, *body = request_.replace("{5000 letters}", 5000 * "a").split(" ", 2)
    answer = http.request(method, path, content="".join(body), headers={"Content-Type": "application/json"})
    status, _, reason = expected.partition(" ")
    assert answer.status_code == int(status) and reason in answer.json()["error"], answer.text


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "-1e999"])
def test_infinite_strategy_parameters_are_refused(
    client: ControllerClient, http: httpx.Client, tmp_path: Path, number: str
) -> None:
    """Parameters are part of the status and of the page's events; 1e999 is valid JSON, and infinite when parsed."""
    client.create_job(1, BSP())
    path = tmp_path / "own.py"
    path.write_text("def own(seen, pace=1.0): return None\n")
    body = f'{{"name": "{path}:own", "parameters": {{"pace": {number}}}}}'
    answer = http.put("/v1/jobs/0/automatic", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422 and "finite number" in answer.json()["error"]
    for asked in ("/v1/status", "/v1/live", "/metrics"):
        assert http.get(asked).status_code == 200
    own = {"name": f"{path}:own", "parameters": {"pace": 2.5}}
    assert http.put("/v1/jobs/0/automatic", json=own).json()["automatic"]["parameters"] == {"pace": 2.5}


def test_hostile_worker_reports_do_not_break_the_status(client: ControllerClient, hosts: list[Host]) -> None:
    """Lone surrogates, terminal escapes, huge numbers, and deep nesting."""
    started(client, hosts[:1], BSP())

    def reported(turn: int) -> Facts | None:
        latest = report(client)
        return latest if latest.get("iteration") == turn else None

    deep = b"[" * 300 + b"]" * 300
    for turn, facts in enumerate(
        [
            b'"state": "\\ud800"',
            b'"state": "\\u001b]0;mine\\u0007"',
            b'"\\ud800": 1',
            b'"loss": 1' + b"0" * 400,
            b'"loss": ' + deep,
            b'"state": "' + b"x" * 900 + b'"',
        ]
    ):
        hosts[0].send(Op.REPORT, 0, 0, b'{"iteration": %d, %s}' % (turn, facts))
        shown = until(partial(reported, turn), f"report {turn} arrives")
        assert set(shown.values()) <= {turn, None}
        assert metrics(client).status_code == 200
