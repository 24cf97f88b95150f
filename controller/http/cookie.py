"""The cookie that proves that a browser's user has the token. No script can read it, and no other site's page can make
the browser send it.

It is derived from the token, but does not reveal it. A browser sends a host's cookies to all of its ports. So the
cookie's name contains the port, and two controllers of one machine do not overwrite each other's.
"""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import Response

PURPOSE = b"the controller's page"


def give(answer: Response, headers: Headers, token: str) -> None:
    """Sets the cookie in an answer, until the browser is closed. headers: the request's."""
    answer.set_cookie(_name(headers), _value(token), httponly=True, samesite="strict")


def carries(headers: Headers, token: str) -> bool:
    """Whether a request with these headers has the cookie of this token; compared in constant time."""
    given = cookie_parser(headers.get("cookie", "")).get(_name(headers), "")
    return hmac.compare_digest(given.encode("latin-1", "replace"), _value(token).encode())


def _name(headers: Headers) -> str:
    try:
        return f"serene-{urlsplit('//' + headers.get('host', '')).port or 80}"
    except ValueError:
        return "serene"


def _value(token: str) -> str:
    return hmac.new(token.encode(), PURPOSE, hashlib.sha256).hexdigest()
