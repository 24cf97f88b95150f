"""Made-up observations for tests of automatic strategies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from serene.controller.automatic import Automatic, Decision, Observation, WorkerView
from serene.strategy import BSP, Strategy


def view(worker: int, pace: float = 0.1, **fields: Any) -> WorkerView:
    whole = WorkerView(worker, True, 10, 0.0, pace * 1.2, pace, pace, pace, 0.1, 1.0, busy_s=pace * 1.08)
    return replace(whole, **fields)


def seen(*workers: WorkerView, strategy: Strategy = BSP(), since: float = 100.0) -> Observation:
    return Observation(t=0.0, epoch=3, since_swap_s=since, strategy=strategy, workers=workers)


def waiting(share: float, strategy: Strategy, since: float = 100.0) -> Observation:
    return seen(view(0, waiting_share=share), view(1, waiting_share=share), strategy=strategy, since=since)


def decided(automatic: Automatic, observation: Observation) -> Decision:
    answer = automatic.decide(observation)
    assert isinstance(answer, Decision)
    return answer
