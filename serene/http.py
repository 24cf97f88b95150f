"""Access to a controller's HTTP interface: its address and token. The command line, the process group, experiments and
tests use them.

    SERENE_CONTROLLER=http://HOST:PORT      or unix:/PATH, which reaches it from any network namespace of its machine
    SERENE_TOKEN=...                        the token that the controller was started with
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

import httpx
from typing_extensions import Self

from serene.errors import SereneError

CONTROLLER = "SERENE_CONTROLLER"
TOKEN = "SERENE_TOKEN"
DEFAULT_HTTP = "127.0.0.1:8559"
DEFAULT_URL = f"http://{DEFAULT_HTTP}"
UNIX = "unix:"
LONGEST_PATH = 107  # the longest path of a Unix socket, in bytes
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,512}")  # characters that HTTP allows after Bearer; too long to be guessed


def token() -> str | None:
    """The token in the environment. Raises SereneError if its form is invalid."""
    given = os.environ.get(TOKEN)
    if given and not _TOKEN.fullmatch(given):
        raise SereneError(
            f"${TOKEN}: expected 16 to 512 letters, digits and any of ._~+/=-, for example what 'openssl rand -hex 16' "
            "prints"
        )
    return given or None


def controller_url(given: str | None = None) -> str:
    """The URL of the controller named here or in the environment."""
    return (given or os.environ.get(CONTROLLER) or DEFAULT_URL).rstrip("/")


class NoController(SereneError):
    """No controller answers at this address in time."""


class NotAController(SereneError):
    """Another program answers at this address."""


class Rejected(SereneError):
    """An error that the controller answered with. status: HTTP's status code."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Connection:
    """A connection to one controller. url: as for `controller_url`. timeout_s: for an answer. start: the command that
    starts a controller, for the message if none answers. Raises SereneError if the URL is not valid."""

    def __init__(self, url: str | None = None, *, timeout_s: float = 15.0, start: str = "serenectl up") -> None:
        self.url = controller_url(url)
        self._timeout_s, self._start = timeout_s, start
        self._http = _client(self.url, timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Any:
        """The JSON that the controller answers with. Raises NoController, NotAController, Rejected, or SereneError if
        the body has a number that is not finite."""
        try:
            content = None if body is None else json.dumps(body, allow_nan=False).encode()
        except ValueError:
            raise SereneError("a number is NaN or infinite: expected finite numbers") from None
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            response = self._http.request(method, path, content=content, headers=headers)
        except (httpx.TransportError, httpx.InvalidURL, UnicodeError) as error:  # UnicodeError: too long for DNS
            raise self.nobody(error) from None
        return self.read(response)

    def read(self, response: httpx.Response) -> Any:
        """The JSON in a response that has been read. Raises NotAController or Rejected."""
        try:
            answer = response.json()
        except ValueError:
            raise self.somebody_else() from None
        if not response.is_error:
            return answer
        if not isinstance(answer, dict) or not isinstance(answer.get("error"), str):
            raise self.somebody_else()
        raise Rejected(answer["error"], response.status_code)

    def nobody(self, error: Exception) -> NoController:
        """The error for a failed request."""
        if isinstance(error, httpx.ReadTimeout):
            return NoController(
                f"the controller at {self.url} did not answer within {self._timeout_s:g} s; it may be stopped or busy"
            )
        return NoController(f"no controller at {self.url}: start one with '{self._start}', or set ${CONTROLLER}")

    def somebody_else(self) -> NotAController:
        """The error for an answer that is not a controller's."""
        return NotAController(
            f"{self.url} answers, but is not a Serene controller of this version. Start one elsewhere with "
            f"'serenectl up --http HOST:PORT', and set ${CONTROLLER} to it"
        )


def _client(url: str, timeout_s: float) -> httpx.Client:
    secret = token()
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    base, transport, encrypted = url, None, False
    if url.startswith(UNIX):
        path = url.removeprefix(UNIX)
        if not path.startswith("/") or len(os.fsencode(path)) > LONGEST_PATH:
            raise _no_address(url)
        base, transport = "http://localhost", httpx.HTTPTransport(uds=path, verify=False)
    else:
        try:
            named = httpx.URL(url)
        except httpx.InvalidURL:
            raise _no_address(url) from None
        if named.scheme not in ("http", "https") or not named.host:
            raise _no_address(url)
        encrypted = named.scheme == "https"  # without TLS no certificates are needed, which take 20 ms to load
    # Never through the environment's proxy: only the controller may see the token.
    return httpx.Client(
        base_url=base, transport=transport, headers=headers, timeout=timeout_s, trust_env=False, verify=encrypted
    )


def _no_address(url: str) -> SereneError:
    return SereneError(f"{url!r}: expected {UNIX}/PATH, of at most {LONGEST_PATH} bytes, or http://HOST:PORT")
