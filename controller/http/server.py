"""The controller's only interface: JSON over HTTP. The command line, the page, experiments and tests use it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Annotated

from fastapi import Body, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from serene.controller.admission.frames import LARGEST_NUMBER, LONGEST_TEXT
from serene.controller.coordinator import Coordinator
from serene.controller.http.answers import Json, to_json
from serene.controller.http.cookie import give
from serene.controller.http.guard import Guard
from serene.controller.http.page import add_page
from serene.controller.jobs.errors import Conflict, NoSuchJob
from serene.controller.jobs.named import LONGEST_NAME, Asks
from serene.controller.status.explain import NoSuchWorker
from serene.controller.status.metrics import CONTENT_TYPE
from serene.controller.status.model import Snapshot, StrategyField
from serene.controller.switch.connection import SwitchError
from serene.errors import SereneError
from serene.fixedpoint import DEFAULT_LIMIT
from serene.http import token
from serene.strategy import BSP

Fact = Annotated[str, Field(max_length=LONGEST_TEXT)]  # as for a worker's reported texts
Number = Annotated[int, Field(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]
SNAPSHOT_S = 0.2  # between two snapshots of the live stream
MOST_STREAMS = 32  # open at once
STREAM_COUNTERS_S = 0.5  # counters of a snapshot are at most this old


class NewJob(BaseModel):
    """The body of POST /v1/jobs."""

    model_config = ConfigDict(extra="forbid", strict=True)

    workers: int
    strategy: StrategyField = BSP()
    job: int | None = None
    scale: int | None = None
    limit: float = Field(default=DEFAULT_LIMIT, allow_inf_nan=False)
    pool_slots: int | None = None  # makes it a pool, whose slots are used in turn
    racks: Annotated[list[int], Field(max_length=256)] | None = None  # workers in each rack
    precision: int = 32  # bits of a pool's gradients' values
    places: int | None = None  # most workers at a time; by default as many as begin
    minimum: int | None = None  # members that eviction for silence leaves
    evict_after: float | None = Field(default=None, allow_inf_nan=False)  # seconds of silence


class WantedPlace(BaseModel):
    """The body of POST /v1/places: a process asks for a place in the job of that name, repeatedly until it has one."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(max_length=LONGEST_NAME)]
    process: Annotated[str, Field(min_length=1, max_length=64)]
    workers: Annotated[int, Field(ge=1, le=256)]
    settings: Annotated[dict[Fact, Number | Fact], Field(max_length=32)]
    strategy: StrategyField = BSP()
    scale: int
    limit: int
    rack: Annotated[int, Field(ge=0, le=255)] | None = None
    places: int | None = None  # as of a new job
    minimum: int | None = None
    evict_after: float | None = Field(default=None, allow_inf_nan=False)


class Precision(BaseModel):
    """The body of PUT /v1/jobs/{job}/precision."""

    model_config = ConfigDict(extra="forbid", strict=True)

    bits: int


Text = Annotated[str, Field(max_length=4096)]


class Chosen(BaseModel):
    """The body of PUT /v1/jobs/{job}/automatic: a shipped automatic strategy, or FILE.py:NAME."""

    # Every status has the parameters, and JSON has no numbers that are not finite.
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    name: Text
    parameters: Annotated[dict[Text, bool | int | float | Text], Field(max_length=32)] = {}


def application(
    coordinator: Coordinator, guard: Callable[[ASGIApp], Guard], stop: Callable[[], None], stopping: asyncio.Event
) -> FastAPI:
    """The application with all routes, behind the guard. stop: called on POST /v1/shutdown. stopping: ends the live
    streams when it is set."""
    app = FastAPI(title="Serene controller", docs_url=None, redoc_url=None, openapi_url=None)
    _answer_errors(app)
    add_page(app)
    app.add_middleware(guard)

    @app.get("/v1/status")
    async def status(counters_s: Annotated[float, Query(ge=0, le=1e12, allow_inf_nan=False)] = 0.0) -> Json:
        """counters_s: counters older than that are read again."""
        return Json(await coordinator.status(counters_s))

    @app.get("/v1/jobs")
    async def jobs() -> Json:
        return Json((await coordinator.status()).jobs)

    @app.get("/v1/jobs/{job}")
    async def one_job(job: int) -> Json:
        return Json(await coordinator.one_job(job))

    @app.post("/v1/jobs")
    async def create_job(new: NewJob) -> Json:
        return Json(await coordinator.create_job(**dict(new)), 201)

    @app.delete("/v1/jobs/{job}")
    async def delete_job(job: int) -> Json:
        await coordinator.delete_job(job)
        return Json({"job": job})

    @app.post("/v1/places")
    async def find_place(wanted: WantedPlace) -> Json:
        asks = Asks(wanted.process, wanted.workers, wanted.settings, wanted.scale, wanted.limit, wanted.rack)
        found = await coordinator.find_place(
            wanted.name, asks, wanted.strategy, wanted.places, wanted.minimum, wanted.evict_after
        )
        return Json(found)

    @app.put("/v1/jobs/{job}/strategy")
    async def set_strategy(job: int, strategy: Annotated[StrategyField, Body()]) -> Json:
        return Json(await coordinator.set_strategy(job, strategy))

    @app.put("/v1/jobs/{job}/precision")
    async def set_precision(job: int, wanted: Precision) -> Json:
        return Json(await coordinator.set_precision(job, wanted.bits))

    @app.put("/v1/jobs/{job}/automatic")
    async def set_automatic(job: int, chosen: Chosen) -> Json:
        return Json(await coordinator.set_automatic(job, chosen.name, dict(chosen.parameters)))

    @app.delete("/v1/jobs/{job}/automatic")
    async def unset_automatic(job: int) -> Json:
        return Json(await coordinator.unset_automatic(job))

    @app.put("/v1/jobs/{job}/workers/{worker}/evicted")
    async def evict(job: int, worker: int) -> Json:
        return Json(await coordinator.set_evicted(job, worker, True))

    @app.delete("/v1/jobs/{job}/workers/{worker}/evicted")
    async def readmit(job: int, worker: int) -> Json:
        return Json(await coordinator.set_evicted(job, worker, False))

    @app.get("/v1/jobs/{job}/explanation")
    async def explanation(job: int, worker: int | None = None) -> Json:
        return Json(await coordinator.explain(job, worker))

    @app.post("/v1/session")
    async def session(request: Request) -> Json:
        """Gives a browser that has sent the token the cookie for its further requests."""
        answer, secret = Json({}), token()
        if secret is not None:
            give(answer, request.headers, secret)
        return answer

    @app.get("/v1/live")
    async def live(since: Annotated[float, Query(ge=0, le=1e12, allow_inf_nan=False)] = 0.0) -> Json:
        return Json(await coordinator.live(since))

    @app.get("/v1/choices")
    async def choices() -> Json:
        return Json(coordinator.choices())

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(await coordinator.metrics(), media_type=CONTENT_TYPE)

    @app.get("/v1/events")
    async def events() -> Response:
        if coordinator.events.listeners >= MOST_STREAMS:
            return Json({"error": f"too many streams ({MOST_STREAMS} at most): close one"}, 503)
        return StreamingResponse(_stream(coordinator, stopping), media_type="application/x-ndjson")

    @app.post("/v1/shutdown")
    async def shutdown() -> Json:
        stop()
        return Json({"stopping": True})

    return app


async def _stream(coordinator: Coordinator, stopping: asyncio.Event) -> AsyncIterator[str]:
    """Lines with a JSON object each: events as they happen, and snapshots of the status."""
    with coordinator.events.subscribe() as listener:
        while not stopping.is_set():
            snapshot = Snapshot(status=await coordinator.status(STREAM_COUNTERS_S))
            yield to_json(snapshot) + "\n"
            try:
                event = await asyncio.wait_for(listener.get(), SNAPSHOT_S)
            except asyncio.TimeoutError:
                continue
            yield to_json(event) + "\n"


def _answer_errors(app: FastAPI) -> None:
    """Answers every error with ``{"error": text}``."""

    @app.exception_handler(SereneError)
    async def serene_error(_: Request, error: SereneError) -> Json:
        status = {NoSuchJob: 404, NoSuchWorker: 404, Conflict: 409}.get(
            type(error), 503 if isinstance(error, SwitchError) else 422
        )
        return Json({"error": str(error)}, status)

    @app.exception_handler(RequestValidationError)
    async def not_understood(_: Request, error: RequestValidationError) -> Json:
        problems = (
            f"{'.'.join(str(part) for part in problem['loc'][1:]) or 'body'}: {problem['msg']}"
            for problem in error.errors()
        )
        return Json({"error": "; ".join(problems)}, 422)

    @app.exception_handler(HTTPException)
    async def no_such_path(request: Request, error: HTTPException) -> Json:
        return Json({"error": f"{request.method} {request.url.path}: {error.detail}"}, error.status_code)

    @app.exception_handler(Exception)
    async def internal_error(_: Request, error: Exception) -> Json:
        return Json({"error": f"the controller failed: {type(error).__name__}: {error}"}, 500)
