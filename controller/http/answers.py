"""The controller's answers in JSON."""

from __future__ import annotations

import json

from pydantic import BaseModel
from starlette.responses import JSONResponse

from serene.controller.status.model import Event


class Json(JSONResponse):
    """JSON in ASCII: text from other processes may hold a lone surrogate, which UTF-8 cannot encode."""

    def render(self, content: object) -> bytes:
        return to_json(content).encode("ascii")


def to_json(content: object) -> str:
    """``content`` as JSON; it may hold models."""
    return json.dumps(content, allow_nan=False, separators=(",", ":"), default=_plain)


def _plain(model: object) -> object:
    assert isinstance(model, BaseModel), model
    return model.model_dump(exclude_unset=isinstance(model, Event))
