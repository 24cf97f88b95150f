"""HTTP + JSON on loopback: the controller's only interface. Command line, experiments and tests use it."""

from __future__ import annotations

import asyncio
import ipaddress
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException

from controller.connection import SwitchError
from controller.coordinator import Coordinator
from controller.explain import NoSuchWorker
from controller.jobs import Conflict, NoSuchJob
from controller.metrics import CONTENT_TYPE
from serene.errors import SereneError
from serene.fixedpoint import DEFAULT_SCALE
from serene.strategy import strategy_from_dict

SNAPSHOT_S = 0.2  # between two snapshots of the live stream
STREAM_COUNTERS_S = 0.5  # counters of a snapshot are at most this old


class NewJob(BaseModel):
    """The body of POST /v1/jobs."""

    model_config = ConfigDict(extra="forbid")

    workers: int
    strategy: dict[str, Any] = {"name": "bsp"}
    job: int | None = None
    scale: int = DEFAULT_SCALE


class Chosen(BaseModel):
    """The body of PUT /v1/jobs/{job}/automatic: a shipped automatic strategy, or FILE.py:NAME."""

    model_config = ConfigDict(extra="forbid")

    name: str
    parameters: dict[str, object] = {}


def application(coordinator: Coordinator, stop: Callable[[], None], stopping: asyncio.Event) -> FastAPI:
    """The routes. ``stop`` is called on POST /v1/shutdown; streams end when ``stopping`` is set."""
    app = FastAPI(title="Serene controller", docs_url=None, redoc_url=None, openapi_url=None)
    _answer_errors(app)
    _turn_away_strangers(app)

    @app.get("/v1/status")
    async def status() -> dict[str, Any]:
        return await coordinator.status()

    @app.get("/v1/jobs")
    async def jobs() -> list[dict[str, Any]]:
        return (await coordinator.status())["jobs"]

    @app.get("/v1/jobs/{job}")
    async def one_job(job: int) -> dict[str, Any]:
        await coordinator.status()
        return coordinator.job_status(job)

    @app.post("/v1/jobs", status_code=201)
    async def create_job(new: NewJob) -> dict[str, Any]:
        return await coordinator.create_job(new.workers, strategy_from_dict(new.strategy), new.job, new.scale)

    @app.delete("/v1/jobs/{job}")
    async def delete_job(job: int) -> dict[str, Any]:
        await coordinator.delete_job(job)
        return {"job": job}

    @app.put("/v1/jobs/{job}/strategy")
    async def set_strategy(job: int, strategy: dict[str, Any]) -> dict[str, Any]:
        return await coordinator.set_strategy(job, strategy_from_dict(strategy))

    @app.put("/v1/jobs/{job}/automatic")
    async def set_automatic(job: int, chosen: Chosen) -> dict[str, Any]:
        return await coordinator.set_automatic(job, chosen.name, chosen.parameters)

    @app.delete("/v1/jobs/{job}/automatic")
    async def unset_automatic(job: int) -> dict[str, Any]:
        return await coordinator.unset_automatic(job)

    @app.put("/v1/jobs/{job}/workers/{worker}/evicted")
    async def evict(job: int, worker: int) -> dict[str, Any]:
        return await coordinator.set_evicted(job, worker, True)

    @app.delete("/v1/jobs/{job}/workers/{worker}/evicted")
    async def readmit(job: int, worker: int) -> dict[str, Any]:
        return await coordinator.set_evicted(job, worker, False)

    @app.get("/v1/jobs/{job}/explanation")
    async def explanation(job: int, worker: int | None = None) -> dict[str, Any]:
        return await coordinator.explain(job, worker)

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(await coordinator.metrics(), media_type=CONTENT_TYPE)

    @app.get("/v1/events")
    async def events() -> StreamingResponse:
        return StreamingResponse(_stream(coordinator, stopping), media_type="application/x-ndjson")

    @app.post("/v1/shutdown")
    async def shutdown() -> dict[str, Any]:
        stop()
        return {"stopping": True}

    return app


async def _stream(coordinator: Coordinator, stopping: asyncio.Event) -> AsyncIterator[str]:
    """A JSON object a line: events as they happen, and between them a snapshot of the status."""
    with coordinator.events.subscribe() as listener:
        while not stopping.is_set():
            snapshot = await coordinator.status(STREAM_COUNTERS_S)
            yield json.dumps({"event": "status", "status": snapshot}) + "\n"
            try:
                told = await asyncio.wait_for(listener.get(), SNAPSHOT_S)
            except asyncio.TimeoutError:
                continue
            yield json.dumps(told) + "\n"


def _turn_away_strangers(app: FastAPI) -> None:
    """A web page from anywhere can make its reader's browser ask a loopback address; such requests are refused."""

    @app.middleware("http")
    async def check(request: Request, serve: Callable[[Request], Awaitable[Response]]) -> Response:
        host = request.headers.get("host", "")
        if not _is_loopback(f"//{host}"):
            return JSONResponse({"error": f"Host: {host}: expected a loopback address"}, 403)
        origin = request.headers.get("origin")
        if origin is not None and not _is_loopback(origin):
            return JSONResponse({"error": f"Origin: {origin}: expected none, or a loopback address"}, 403)
        return await serve(request)


def _is_loopback(url: str) -> bool:
    try:
        name = urlsplit(url).hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _answer_errors(app: FastAPI) -> None:
    """Every error is ``{"error": text}``."""

    @app.exception_handler(SereneError)
    async def serene_error(_: Request, error: SereneError) -> JSONResponse:
        status = {NoSuchJob: 404, NoSuchWorker: 404, Conflict: 409}.get(
            type(error), 503 if isinstance(error, SwitchError) else 422
        )
        return JSONResponse({"error": str(error)}, status)

    @app.exception_handler(RequestValidationError)
    async def not_understood(_: Request, error: RequestValidationError) -> JSONResponse:
        problems = (
            f"{'.'.join(str(part) for part in problem['loc'][1:]) or 'body'}: {problem['msg']}"
            for problem in error.errors()
        )
        return JSONResponse({"error": "; ".join(problems)}, 422)

    @app.exception_handler(HTTPException)
    async def no_such_path(request: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": f"{request.method} {request.url.path}: {error.detail}"}, error.status_code)

    @app.exception_handler(Exception)
    async def our_mistake(_: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"error": f"the controller failed: {type(error).__name__}: {error}"}, 500)
