"""What the data plane need not know of a job, for a controller that takes it over: its name, its processes' settings,
and how its workers come and go. The controller keeps it with the job's entry in the switch, so that it lives as long as
the job does."""

from __future__ import annotations

import json
import logging
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from serene.controller.jobs.elastic import LONGEST_S, SHORTEST_S
from serene.controller.jobs.job import Elastic, Job, WorkerState
from serene.report import Fact

LOG = logging.getLogger("serene.controller")


class _Note(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    name: Annotated[str, Field(max_length=64)] | None = None
    settings: dict[str, Fact] = {}
    # That the job began with, of one whose workers come and go.
    workers: Annotated[int, Field(ge=1)] | None = None
    minimum: Annotated[int, Field(ge=1)] = 1
    evict_after: Annotated[float, Field(ge=SHORTEST_S, le=LONGEST_S)] | None = None


def of(job: Job) -> bytes:
    """JSON; empty where there is nothing to note."""
    said: dict[str, object] = {}
    if job.name is not None:
        said |= {"name": job.name, "settings": job.settings}
    if job.elastic is not None:
        said |= {
            "workers": job.workers_expected, "minimum": job.elastic.minimum, "evict_after": job.elastic.evict_after,
        }  # fmt: skip
    return json.dumps(said).encode() if said else b""


def take(job: Job, note: bytes) -> None:
    """Gives a job that was found in the switch what its note says. A note that is none, of another release, is
    ignored: the switch runs the job all the same."""
    if not note:
        return
    try:
        said = _Note.model_validate_json(note)
    except ValidationError:
        LOG.warning("job %d in the switch was stored by another release, so its name is unknown", job.id)
        return
    job.name, job.settings = said.name, said.settings
    if said.workers is not None:
        job.elastic = Elastic(len(job.workers), said.minimum, said.evict_after)
        job.workers_expected = said.workers
        # Who takes no part was evicted or has left; a process that is still there is heard, and readmitted.
        job.silenced = frozenset(worker.id for worker in job.workers if worker.state is WorkerState.EVICTED)
