"""Facts about a job for a controller that takes it over, which the data plane does not need: the job's name, its
processes' settings, and how its workers come and go. The controller stores them with the job's entry in the switch, so
that they live as long as the job."""

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
    # The number of workers with which a job began, whose workers come and go.
    workers: Annotated[int, Field(ge=1)] | None = None
    minimum: Annotated[int, Field(ge=1)] = 1
    evict_after: Annotated[float, Field(ge=SHORTEST_S, le=LONGEST_S)] | None = None


def of(job: Job) -> bytes:
    """JSON; empty without such facts."""
    fields: dict[str, object] = {}
    if job.name is not None:
        fields |= {"name": job.name, "settings": job.settings}
    if job.elastic is not None:
        fields |= {
            "workers": job.workers_expected, "minimum": job.elastic.minimum, "evict_after": job.elastic.evict_after,
        }  # fmt: skip
    return json.dumps(fields).encode() if fields else b""


def take(job: Job, note: bytes) -> None:
    """Adds a note's facts to a job that was found in the switch. An invalid note, such as another release's, is
    ignored: the switch runs the job nevertheless."""
    if not note:
        return
    try:
        fields = _Note.model_validate_json(note)
    except ValidationError:
        LOG.warning("job %d in the switch was stored by another release, so its name is unknown", job.id)
        return
    job.name, job.settings = fields.name, fields.settings
    if fields.workers is not None:
        job.elastic = Elastic(len(job.workers), fields.minimum, fields.evict_after)
        job.workers_expected = fields.workers
        # A worker that takes no part was evicted or has left. If its process still runs, it sends, and is readmitted.
        job.silenced = frozenset(worker.id for worker in job.workers if worker.state is WorkerState.EVICTED)
