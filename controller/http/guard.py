"""Checks in front of the HTTP interface: which requests are accepted, and how large they may be.

A web page from anywhere can make its reader's browser ask a loopback address. Such a request names the page's site as
its `Origin`, or, where the page's own name was made to lead to loopback, in `Host`; a page that another program serves
on this machine has another port. None of them may command the switch. A loopback `Host` may have any port: it is
another one behind a tunnel.
"""

from __future__ import annotations

import asyncio
import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from controller.http.answers import Json

LARGEST_BODY = 64 << 10  # bytes
BODY_TIMEOUT_S = 10.0  # for the whole body


class Guard:
    """An ASGI application before another: requests that pass carry their whole body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        refusal = _stranger(headers)
        body: Message | None = None
        if refusal is None:
            try:
                body = await asyncio.wait_for(_whole_body(headers, receive), BODY_TIMEOUT_S)
            except _TooLong:
                refusal = _refuse(413, f"a body of more than {LARGEST_BODY} bytes")
            except asyncio.TimeoutError:
                refusal = _refuse(408, f"the body did not come within {BODY_TIMEOUT_S:g} s")
        if refusal is not None:
            await refusal(scope, receive, send)
            return

        async def with_body() -> Message:
            nonlocal body
            first, body = body, None
            return first if first is not None else await receive()

        await self._app(scope, with_body, send)


class _TooLong(Exception):
    pass


def _refuse(status: int, text: str) -> Json:
    return Json({"error": text}, status, headers={"connection": "close"})  # what else comes on it is not read


def _stranger(headers: Headers) -> Json | None:
    host = headers.get("host", "")
    if not _is_loopback(host):
        return _refuse(403, f"Host: {host}: expected a loopback address")
    origin = headers.get("origin")
    if origin is not None and origin.lower() != f"http://{host.lower()}":
        return _refuse(403, f"Origin: {origin}: expected none, or the controller's own, http://{host}")
    site = headers.get("sec-fetch-site", "none")
    if site not in ("none", "same-origin"):
        return _refuse(403, f"Sec-Fetch-Site: {site}: expected none or same-origin")
    return None


def _is_loopback(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


async def _whole_body(headers: Headers, receive: Receive) -> Message:
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > LARGEST_BODY:
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
