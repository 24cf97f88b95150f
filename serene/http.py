"""How to reach a controller's HTTP interface: its address and token, the same for the command line, the process group,
experiments and tests.

    SERENE_CONTROLLER=http://HOST:PORT      or unix:/PATH, which reaches it from any network namespace of its machine
    SERENE_TOKEN=...                        the token that the controller was started with
"""

from __future__ import annotations

import os
import re

import httpx

from serene.errors import SereneError

CONTROLLER = "SERENE_CONTROLLER"
TOKEN = "SERENE_TOKEN"
DEFAULT_HTTP = "127.0.0.1:8559"
DEFAULT_URL = f"http://{DEFAULT_HTTP}"
UNIX = "unix:"
LONGEST_PATH = 107  # the longest path of a Unix socket, in bytes
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,512}")  # what HTTP allows after Bearer, long enough not to be guessed


def token() -> str | None:
    """The token in the environment. Raises SereneError if it cannot be one."""
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


def connection(url: str, timeout_s: float) -> httpx.Client:
    """An HTTP client of the controller at ``url``. Raises SereneError if the URL is not valid."""
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
        encrypted = named.scheme == "https"  # else certificates, which take 20 ms to load, are not needed
    # Never through a proxy from the environment: the token is for the controller alone.
    return httpx.Client(
        base_url=base, transport=transport, headers=headers, timeout=timeout_s, trust_env=False, verify=encrypted
    )


def silent(url: str, timeout_s: float) -> str:
    """What to say of one that takes connections and does not answer, which one that was stopped does."""
    return f"the controller at {url} did not answer within {timeout_s:g} s; it may be stopped or busy"


def _no_address(url: str) -> SereneError:
    return SereneError(f"{url!r}: expected {UNIX}/PATH, of at most {LONGEST_PATH} bytes, or http://HOST:PORT")
