"""A typed client of the controller's HTTP interface, for the command line, experiments and tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import httpx
from pydantic import TypeAdapter

from serene.controller.status.model import (
    Event,
    JobExplanation,
    JobStatus,
    PrecisionStatus,
    Snapshot,
    Status,
    SwapStatus,
)
from serene.http import Connection, NoController, NotAController, Rejected
from serene.strategy import Strategy, to_dict

__all__ = ["ControllerClient", "NoController", "NotAController", "Rejected"]

T = TypeVar("T")

MESSAGE: TypeAdapter[Snapshot | Event] = TypeAdapter(Snapshot | Event)


class ControllerClient(Connection):
    """A connection to one controller. Every method raises NoController, NotAController or Rejected;
    `serene.controller.status.model` documents what each returns."""

    def status(self) -> Status:
        return self._ask(Status, "GET", "/v1/status")

    def jobs(self) -> list[JobStatus]:
        return self._ask(list[JobStatus], "GET", "/v1/jobs")

    def job(self, job: int) -> JobStatus:
        return self._ask(JobStatus, "GET", f"/v1/jobs/{job}")

    def create_job(
        self,
        workers: int,
        strategy: Strategy,
        *,
        job: int | None = None,
        scale: int | None = None,
        limit: float | None = None,
        pool_slots: int | None = None,
        racks: Sequence[int] | None = None,
        precision: int | None = None,
        places: int | None = None,
        minimum: int | None = None,
        evict_after: float | None = None,
    ) -> JobStatus:
        """Makes a job, and returns it. The controller chooses an id and other numbers that are not given.

        scale: fixed-point units in 1.0; limit: the largest |value| of a contribution. pool_slots: makes it a pool, for
        a process group, with this number of slots; precision: bits of its gradients' values. racks: workers in each
        rack. places, minimum, evict_after: as of `serene.controller.jobs.job.Elastic`.
        """
        by_rack = None if racks is None else list(racks)
        chosen = {
            "job": job, "scale": scale, "limit": limit, "pool_slots": pool_slots, "racks": by_rack,
            "precision": precision, "places": places, "minimum": minimum, "evict_after": evict_after,
        }  # fmt: skip
        given = {name: value for name, value in chosen.items() if value is not None}
        return self._ask(JobStatus, "POST", "/v1/jobs", {"workers": workers, "strategy": to_dict(strategy), **given})

    def delete_job(self, job: int) -> None:
        self._ask(object, "DELETE", f"/v1/jobs/{job}")

    def set_strategy(self, job: int, strategy: Strategy) -> SwapStatus:
        """Sets the strategy, and returns the swap. Its epoch is 0 if the job has not started, and the present one if
        nothing changed."""
        return self._ask(SwapStatus, "PUT", f"/v1/jobs/{job}/strategy", to_dict(strategy))

    def set_precision(self, job: int, bits: int) -> PrecisionStatus:
        """Sets the precision of a process group's gradients."""
        return self._ask(PrecisionStatus, "PUT", f"/v1/jobs/{job}/precision", {"bits": bits})

    def set_automatic(self, job: int, name: str, parameters: Mapping[str, object] | None = None) -> JobStatus:
        """Starts an automatic strategy for the job, and returns the job."""
        return self._ask(JobStatus, "PUT", f"/v1/jobs/{job}/automatic", {"name": name, "parameters": parameters or {}})

    def unset_automatic(self, job: int) -> JobStatus:
        """Ends the job's automatic strategy, and returns the job, which keeps the strategy in force."""
        return self._ask(JobStatus, "DELETE", f"/v1/jobs/{job}/automatic")

    def evict(self, job: int, worker: int) -> JobStatus:
        """Evicts a worker, and returns the job, whose barrier does not wait for that worker any more."""
        return self._ask(JobStatus, "PUT", f"/v1/jobs/{job}/workers/{worker}/evicted")

    def readmit(self, job: int, worker: int) -> JobStatus:
        """Readmits a worker, and returns the job, whose barrier waits for that worker again."""
        return self._ask(JobStatus, "DELETE", f"/v1/jobs/{job}/workers/{worker}/evicted")

    def explain(self, job: int, worker: int | None = None) -> JobExplanation:
        """An explanation of the state of each worker of a job, or of one worker."""
        query = "" if worker is None else f"?worker={worker}"
        return self._ask(JobExplanation, "GET", f"/v1/jobs/{job}/explanation{query}")

    def shutdown(self) -> None:
        """Stops the controller; its switch keeps running."""
        self._ask(object, "POST", "/v1/shutdown")

    def events(self) -> Iterator[Snapshot | Event]:
        """The live stream, until the controller stops: a Snapshot about five times a second, and an Event whenever
        something happens."""
        try:
            with self._http.stream("GET", "/v1/events") as response:
                if response.is_error:
                    response.read()
                    self.read(response)
                for line in response.iter_lines():
                    yield MESSAGE.validate_json(line)
        except httpx.TransportError as error:
            raise self.nobody(error) from None
        except ValueError:
            raise self.somebody_else() from None

    def _ask(self, kind: type[T], method: str, path: str, body: Mapping[str, object] | None = None) -> T:
        answer = self.ask(method, path, body)
        try:
            return TypeAdapter(kind).validate_python(answer)
        except ValueError:  # not an answer of a controller
            raise self.somebody_else() from None
