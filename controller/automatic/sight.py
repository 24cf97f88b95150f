"""Whether an automatic strategy has the reports that it decides by; without them it decides nothing."""

from __future__ import annotations

from collections.abc import Sequence

from controller.automatic.base import Observation

# Workers report five times a second at most, and two reports make a measurement.
BLIND_AFTER_S = 3.0
BLIND_AFTER_ROUNDS = 4  # in which a worker could have reported something
BLIND_AT_LAST_S = 30.0  # however slow it is


class Sight:
    """Remembers since when each worker has told nothing of what is needed. Its clock is the caller's."""

    def __init__(self, needs: Sequence[str]) -> None:
        self._needs = needs
        self._dark_since: dict[int, tuple[int, float, int]] = {}  # epoch, time, rounds

    def blind_to(self, seen: Observation, now: float) -> tuple[int, ...]:
        """The members that have contributed for a while and reported nothing that could be used."""
        blind = []
        for worker in seen.barrier:
            since = self._dark_since.get(worker.id)
            told = all(getattr(worker, need) is not None for need in self._needs)
            if told or since is None or since[0] != seen.epoch or worker.rounds < since[2]:
                self._dark_since[worker.id] = (seen.epoch, now, worker.rounds)
                continue
            _, at, rounds = since
            dark_s = now - at
            went_on = worker.rounds - rounds >= BLIND_AFTER_ROUNDS
            if dark_s >= BLIND_AT_LAST_S or (went_on and dark_s >= BLIND_AFTER_S):
                blind.append(worker.id)
        return tuple(blind)
