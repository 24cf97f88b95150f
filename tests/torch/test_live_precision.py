"""`serenectl precision` while a process group trains: 32 -> 8 -> 32 bits, and no step is lost or half."""

from __future__ import annotations

import json
from itertools import groupby

from serene.controller.http.client import ControllerClient
from tests.controller.processes import until
from tests.torch.live_precision import CHANGES, STEPS
from tests.torch.local import Local, outputs, start_ranks

WORKERS = 2


def test_the_precision_changes_while_it_trains(local: Local) -> None:
    ranks = start_ranks(local, WORKERS, ["-m", "tests.torch.live_precision"])
    found = [json.loads(text.splitlines()[-1]) for text in outputs(ranks)]
    steps = [said["steps"] for said in found]
    bits = [step["bits"] for step in steps[0]]
    assert [bits for bits, _ in groupby(bits)] == [32, *CHANGES.values()]
    assert bits == [step["bits"] for step in steps[1]] and len(bits) == STEPS
    assert [step["gradient"] for step in steps[0]] == [step["gradient"] for step in steps[1]]
    for step in (step for of in steps for step in of):
        assert step["error"] < (1e-6 if step["bits"] == 32 else 2 * WORKERS / (127 // WORKERS))
    narrow = [step["contributions"] for step in steps[0] if step["bits"] == 8]
    assert max(narrow) < 0.5 * min(step["contributions"] for step in steps[0] if step["bits"] == 32)
    with ControllerClient(local.client.url) as client:
        job = until(lambda: client.job(found[0]["job"]), "the job is listed")
        assert job.precision == 32 and [epoch.reason for epoch in job.history][:3] == [
            "started", "precision 8", "precision 32",
        ]  # fmt: skip
        assert [worker.contributions for worker in job.workers] == [said["sent"] for said in found]
        assert [worker.contributions_sent for worker in job.workers] == [said["sent"] for said in found]
