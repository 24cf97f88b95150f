"""Whether an automatic strategy has the reports that it needs to decide."""

from __future__ import annotations

from collections.abc import Sequence

from serene.controller.automatic.base import Observation

# Workers report at most five times a second, and a measurement needs two reports. So a strategy is blind to a worker if
# the needed fields are unknown for this time and this number of rounds,
BLIND_AFTER_S = 3.0
BLIND_AFTER_ROUNDS = 4
BLIND_AT_LAST_S = 30.0  # or for this time, even if the worker is slow


class Sight:
    """Stores the time since which needed fields of each worker have been unknown. needs: fields of a WorkerView."""

    def __init__(self, needs: Sequence[str]) -> None:
        self._needs = needs
        self._dark_since: dict[int, tuple[int, float, int]] = {}  # epoch, time, rounds

    def blind_to(self, seen: Observation, now: float) -> tuple[int, ...]:
        """The numbers of the members that have contributed for a while without reporting the needed fields. now: in
        seconds, on the caller's clock."""
        blind = []
        for worker in seen.barrier:
            since = self._dark_since.get(worker.id)
            known = all(getattr(worker, need) is not None for need in self._needs)
            if known or since is None or since[0] != seen.epoch or worker.rounds < since[2]:
                self._dark_since[worker.id] = (seen.epoch, now, worker.rounds)
                continue
            _, at, rounds = since
            dark_s = now - at
            went_on = worker.rounds - rounds >= BLIND_AFTER_ROUNDS
            if dark_s >= BLIND_AT_LAST_S or (went_on and dark_s >= BLIND_AFTER_S):
                blind.append(worker.id)
        return tuple(blind)
