"""Checks before the HTTP interface: the origin and the size of requests.

A controller with a token accepts only requests that carry the token, or the cookie that a browser got for it. The
page's own files hold no secret and need no token; they ask their user for it.

Any web page can make its reader's browser send requests to a loopback address. Such a request names the page's site in
`Origin` or, after DNS rebinding to loopback, in `Host`. A page of another program on this machine has another port.
None of these may command the switch. A loopback `Host` may have any port, since a tunnel changes the port. A controller
that listens outside loopback accepts any name: it has a token, and a browser sends its cookie only to the name from
which it got it.
"""

from __future__ import annotations

import asyncio
import hmac
import re

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serene.controller.http.answers import Json
from serene.controller.http.cookie import carries
from serene.controller.http.page import is_page
from serene.controller.settings import is_loopback
from serene.http import TOKEN

LARGEST_BODY = 64 << 10  # bytes
MOST_DIGITS = 20  # of a length; Python refuses to read thousands of digits
BODY_TIMEOUT_S = 10.0  # for the whole body
# `Host` may be a name or an address, and a port. It must not have other parts of a URL, such as a user: parsers differ
# in the part that they take for the host.
AUTHORITY = re.compile(r"(?:([a-z0-9.-]+)|\[([0-9a-f:.]+)\])(?::([0-9]{0,5}))?", re.ASCII | re.IGNORECASE)


class Guard:
    """An ASGI application before another one, ``app``, which gets accepted requests with their whole body. token: None:
    requests need none. on_loopback: the controller listens on loopback, so only this machine can connect."""

    def __init__(self, app: ASGIApp, token: str | None, on_loopback: bool) -> None:
        if not (on_loopback or token):
            raise ValueError("outside loopback a token is required")
        self._app = app
        self._token = token
        self._on_loopback = on_loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        refusal = _malformed(scope, headers) or self._stranger(headers)
        if refusal is None and not (scope["method"] == "GET" and is_page(scope["path"])):
            refusal = self._without_token(headers)
        body: Message | None = None
        if refusal is None:
            try:
                body = await asyncio.wait_for(_whole_body(headers, receive), BODY_TIMEOUT_S)
            except _TooLong:
                refusal = _refuse(413, f"the body exceeds {LARGEST_BODY} bytes")
            except asyncio.TimeoutError:
                refusal = _refuse(408, f"the body did not arrive within {BODY_TIMEOUT_S:g} s")
        if refusal is not None:
            await refusal(scope, receive, send)
            return

        async def with_body() -> Message:
            nonlocal body
            first, body = body, None
            return first if first is not None else await receive()

        await self._app(scope, with_body, send)

    def _without_token(self, headers: Headers) -> Json | None:
        if self._token is None or carries(headers, self._token):
            return None
        # As bytes: hmac compares text in constant time only if it is ASCII.
        scheme, _, secret = headers.get("authorization", "").partition(" ")
        if not secret or scheme.lower() != "bearer":
            return _refuse(401, f"this controller requires a token: set {TOKEN} to the controller's token")
        if not hmac.compare_digest(secret.encode("latin-1"), self._token.encode()):
            return _refuse(401, f"wrong token: set {TOKEN} to the controller's token")
        return None

    def _stranger(self, headers: Headers) -> Json | None:
        host = headers.get("host", "")
        if self._on_loopback and not _names_loopback(host):
            return _refuse(403, f"Host: {host}: expected a loopback address")
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{host.lower()}":
            return _refuse(403, f"Origin: {origin}: expected none, or the controller's own, http://{host}")
        site = headers.get("sec-fetch-site", "none")
        if site not in ("none", "same-origin"):
            return _refuse(403, f"Sec-Fetch-Site: {site}: expected 'none' or 'same-origin'")
        return None


class _TooLong(Exception):
    pass


def _refuse(status: int, text: str) -> Json:
    headers = {"connection": "close"}  # this connection is not read any more
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    return Json({"error": text}, status, headers=headers)


def _malformed(scope: Scope, headers: Headers) -> Json | None:
    """The refusal of an ambiguous request, such as one whose target is a whole URL: it names a host, and `Host` may
    name another."""
    if not scope["path"].startswith("/"):
        return _refuse(400, f"{scope['path']}: expected a path, which begins with /")
    for name in ("Host", "Origin", "Sec-Fetch-Site"):
        if len(headers.getlist(name)) > 1:
            return _refuse(400, f"{name}: expected at most one")
    return None


def _names_loopback(host: str) -> bool:
    found = AUTHORITY.fullmatch(host)
    if found is None or int(found[3] or 0) >= 1 << 16:
        return False
    if found[2] is not None:
        return ":" in found[2] and is_loopback(found[2])
    return is_loopback(found[1].lower())


async def _whole_body(headers: Headers, receive: Receive) -> Message:
    length = headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > MOST_DIGITS or int(length) > LARGEST_BODY:
        raise _TooLong
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return message
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > LARGEST_BODY:
            raise _TooLong
        if not message.get("more_body", False):
            return {"type": "http.request", "body": b"".join(parts), "more_body": False}
