"""A typed client of the controller's HTTP interface, for the command line, experiments and tests."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import httpx
from typing_extensions import Self

from controller.settings import DEFAULT_HTTP
from serene.errors import SereneError
from serene.strategy import Strategy, to_dict

ENVIRONMENT = "SERENE_CONTROLLER"
DEFAULT_URL = f"http://{DEFAULT_HTTP}"

Json = dict[str, Any]


class NoController(SereneError):
    """No controller answers at this address."""


class Rejected(SereneError):
    """An error that the controller answered with; ``status`` is HTTP's."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class ControllerClient:
    """One controller. Every method raises NoController or Rejected; `controller.status.snapshot` makes the JSON."""

    def __init__(self, url: str | None = None, *, timeout_s: float = 15.0) -> None:
        self.url = (url or os.environ.get(ENVIRONMENT) or DEFAULT_URL).rstrip("/")
        # Loopback only: a proxy named in the environment must not be used.
        self._http = httpx.Client(base_url=self.url, timeout=timeout_s, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def status(self) -> Json:
        """``{"switch": {...}, "jobs": [...]}``."""
        return self._ask("GET", "/v1/status")

    def jobs(self) -> list[Json]:
        return self._ask("GET", "/v1/jobs")

    def job(self, job: int) -> Json:
        return self._ask("GET", f"/v1/jobs/{job}")

    def create_job(
        self,
        workers: int,
        strategy: Strategy,
        *,
        job: int | None = None,
        scale: int | None = None,
        limit: float | None = None,
        pool_slots: int | None = None,
    ) -> Json:
        """The new job; the controller chooses its id unless ``job`` is given, and the numbers that are not.

        pool_slots: makes it a process group's, with so many slots.
        """
        body: Json = {"workers": workers, "strategy": to_dict(strategy)}
        given = {"job": job, "scale": scale, "limit": limit, "pool_slots": pool_slots}
        body.update({name: value for name, value in given.items() if value is not None})
        return self._ask("POST", "/v1/jobs", body)

    def delete_job(self, job: int) -> None:
        self._ask("DELETE", f"/v1/jobs/{job}")

    def set_strategy(self, job: int, strategy: Strategy) -> Json:
        """``{"epoch", "strategy", "t", "before", "write_ms"}``; epoch 0 when the job has not started."""
        return self._ask("PUT", f"/v1/jobs/{job}/strategy", to_dict(strategy))

    def set_automatic(self, job: int, name: str, parameters: dict[str, object] | None = None) -> Json:
        """The job, for which an automatic strategy decides from now on."""
        return self._ask("PUT", f"/v1/jobs/{job}/automatic", {"name": name, "parameters": parameters or {}})

    def unset_automatic(self, job: int) -> Json:
        """The job, which keeps the strategy it has."""
        return self._ask("DELETE", f"/v1/jobs/{job}/automatic")

    def evict(self, job: int, worker: int) -> Json:
        """The job, whose barrier does not wait for that worker any more."""
        return self._ask("PUT", f"/v1/jobs/{job}/workers/{worker}/evicted")

    def readmit(self, job: int, worker: int) -> Json:
        """The job, whose barrier waits for that worker again."""
        return self._ask("DELETE", f"/v1/jobs/{job}/workers/{worker}/evicted")

    def explain(self, job: int, worker: int | None = None) -> Json:
        """``{"headline", "workers": [{"worker", "state", "text", "advice", "waits_for", "round", "epoch"}]}``."""
        return self._ask("GET", f"/v1/jobs/{job}/explanation" + (f"?worker={worker}" if worker is not None else ""))

    def shutdown(self) -> None:
        self._ask("POST", "/v1/shutdown")

    def events(self) -> Iterator[Json]:
        """The live stream, until the controller stops.

        ``{"event": "status", "status": ...}`` about five times a second, and whenever something happens
        ``{"event": NAME, "t", "text", ...}``.
        """
        try:
            with self._http.stream("GET", "/v1/events") as response:
                for line in response.iter_lines():
                    yield json.loads(line)
        except httpx.TransportError:
            raise self._nobody() from None

    def _ask(self, method: str, path: str, body: Json | None = None) -> Any:
        try:
            content = None if body is None else json.dumps(body, allow_nan=False).encode()
        except ValueError:
            raise SereneError("only finite numbers can be told the controller") from None
        kind = {} if body is None else {"Content-Type": "application/json"}
        try:
            response = self._http.request(method, path, content=content, headers=kind)
        except (httpx.TransportError, httpx.InvalidURL):
            raise self._nobody() from None
        try:
            answer = response.json()
        except ValueError:
            raise self._nobody() from None
        if response.is_error:
            raise Rejected(answer.get("error", f"HTTP {response.status_code}"), response.status_code)
        return answer

    def _nobody(self) -> NoController:
        return NoController(f"no controller at {self.url} (start one with 'serenectl up')")
