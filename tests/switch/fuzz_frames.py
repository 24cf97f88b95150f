"""Mutated packets for the embedded switch: valid ones, ones mutated in structure, and noise."""

from __future__ import annotations

import contextlib
import random
from collections import Counter

from tests.switch.packets import shapes, trial
from tests.switch.sanitizers import FLAGS, PROGRAMS
from tests.switch.serene_job import seeds, start_job
from tests.switch.stf_embedded import EmbeddedTarget

BATCH = 500


def fuzz(count: int, seed: int, program: str, *, sanitize: bool, traced: bool = False) -> Counter[str]:
    """Sends ``count`` packets through one of PROGRAMS; counts those that went in and out. traced: each is traced."""
    json, lanes = PROGRAMS[program]
    rng, counts = random.Random(f"{program} {seed}"), Counter[str]()
    with contextlib.closing(EmbeddedTarget(json.read_bytes(), FLAGS if sanitize else ())) as target:
        if lanes:
            start_job(target)
        given = seeds(lanes) if lanes else shapes()
        for start in range(0, count, BATCH):
            packets = trial(rng, given, min(BATCH, count - start))
            for port, packet in packets:
                if traced:
                    target.switch.process(port, packet, trace=True)
                target.send(port, packet)
            counts["packets in"] += len(packets)
            counts["out"] += sum(len(sent) for sent in target.outputs({}).values())
            target.forget()
    return counts
