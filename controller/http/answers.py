"""JSON as the controller sends it."""

from __future__ import annotations

import json

from pydantic import BaseModel
from starlette.responses import JSONResponse

from controller.status.model import Event


class Json(JSONResponse):
    """In ASCII: text that came from elsewhere may hold half a character, which UTF-8 cannot say."""

    def render(self, content: object) -> bytes:
        return to_json(content).encode("ascii")


def to_json(content: object) -> str:
    """Of models, and of lists of them, too."""
    return json.dumps(content, allow_nan=False, separators=(",", ":"), default=_plain)


def _plain(model: object) -> object:
    assert isinstance(model, BaseModel), model
    return model.model_dump(exclude_unset=isinstance(model, Event))
