"""The controller's page at ``/``: the files of ``controller/page``, served unchanged. They use the HTTP interface."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import FastAPI, Response

FOLDER = Path(__file__).parents[1] / "page"
TYPES = {".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml"}
HEADERS = {
    # The page loads nothing from other sites. It must not be in a frame: a page around it could trick its user into
    # clicking.
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",  # another version of the controller may answer at this address later
}


def is_page(path: str) -> bool:
    """Whether a path is that of one of the page's files."""
    return path == "/" or path.startswith("/page/")


def add_page(app: FastAPI) -> None:
    """Serves each file under ``/page/``, the HTML at ``/``."""
    for file in sorted(FOLDER.iterdir()):
        if file.suffix in TYPES:
            path = "/" if file.suffix == ".html" else f"/page/{file.name}"
            app.get(path)(_answer_with(file, TYPES[file.suffix]))


def _answer_with(file: Path, kind: str) -> Callable[[], Awaitable[Response]]:
    content = file.read_bytes()

    async def serve() -> Response:
        return Response(content, media_type=f"{kind}; charset=utf-8", headers=HEADERS)

    return serve
