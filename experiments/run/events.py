"""Plays the events of a fault file in a run: pauses processes, or kills and restarts them."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Sequence
from typing import Any

from serene.client.session.restoration import rounds
from serene.clock import unix_s
from serene.experiments.run.network import Network, WorkerProcess
from serene.experiments.run.settings import Settings
from serene.faults import Action, Event

Json = dict[str, Any]


class Events:
    """The events of ``settings.faults``. ``workers`` is the run's own list, by worker: a process that replaces a killed
    one takes its place there. ``arguments``: a worker's command line, for the process that replaces it."""

    def __init__(
        self,
        settings: Settings,
        network: Network,
        workers: list[WorkerProcess],
        arguments: Callable[[int], Sequence[str]],
    ) -> None:
        self._settings = settings
        self._network = network
        self._workers = workers
        self._arguments = arguments
        self._pending = sorted(settings.faults.events, key=lambda event: event.iteration)
        self._ends: list[tuple[float, Event]] = []  # events that have begun, and when they end, in monotonic seconds
        self._switch_killed_at = 0.0  # Unix seconds: the counters of its successor lack what was contributed before
        self.played: list[Json] = []
        # For each worker process that was killed, what it had contributed by then in the present session, in steps.
        self.lost_incarnations: list[int] = []
        self._replaced: set[int] = set()  # the workers whose processes these were

    @property
    def under_way(self) -> bool:
        """Whether an event has begun and not ended."""
        return bool(self._ends)

    @property
    def away(self) -> set[int]:
        """Workers that were killed and have not been replaced yet."""
        return {
            event.worker
            for _, event in self._ends
            if event.action is Action.RESTART_WORKER and event.worker is not None
        }

    @property
    def not_played(self) -> list[str]:
        """Events whose iteration has not been reached."""
        return [str(event) for event in self._pending]

    def begin_due(self) -> None:
        """Begins the events whose iteration the workers have reached, by their own count of steps: the switch's begins
        anew with each session."""
        if not self._pending:
            return
        iterations = [worker.steps() for worker in self._workers]
        for event in list(self._pending):
            reached = min(iterations) if event.worker is None else iterations[event.worker]
            if reached >= event.iteration and not (self._under_way_for(event) or self._has_ended(event)):
                self._pending.remove(event)
                self._begin(event)
                self.played.append({"t_unix": unix_s(), "event": str(event)})
                self._ends.append((time.monotonic() + event.seconds, event))

    def _under_way_for(self, event: Event) -> bool:
        """Whether another event of the same process has not ended: this one waits for that."""
        return any(_process(other) == _process(event) for _, other in self._ends)

    def _has_ended(self, event: Event) -> bool:
        """Whether the worker that the event is about has done all its steps."""
        return event.worker is not None and self._workers[event.worker].poll() is not None

    def end_due(self) -> None:
        """Ends the events that have lasted for their time."""
        for ending in list(self._ends):
            when, event = ending
            if time.monotonic() >= when:
                self._end(event)
                self._ends.remove(ending)

    def _begin(self, event: Event) -> None:
        if event.action.of_switch:
            self._network.parts[_switch(event)].kill()
            self._switch_killed_at = unix_s()
            self.lost_incarnations.clear()
            self._replaced.clear()
        elif event.action is Action.RESTART_CONTROLLER:
            self._network.parts["controller"].kill()
        elif event.worker is not None:
            worker = self._workers[event.worker]
            if event.action is Action.PAUSE_WORKER:
                worker.pause()
            else:
                worker.kill()

    def _end(self, event: Event) -> None:
        if event.action.of_switch:
            self._network.start_again(_switch(event))
        elif event.action is Action.RESTART_CONTROLLER:
            self._network.start_again("controller")
        elif event.worker is not None:
            if event.action is Action.PAUSE_WORKER:
                self._workers[event.worker].resume()
            else:
                self._replace(event.worker)

    def _replace(self, worker: int) -> None:
        """Starts a process for the steps that the killed one has left undone."""
        before = self._workers[worker].steps()
        done = self._steps_of(worker)
        # A session that follows a lost one begins with the rounds that restore the sums, which are contributions, too;
        # a process that joins it later has no part in them.
        restoring = rounds(self._settings.racks) if self._switch_killed_at and worker not in self._replaced else 0
        self._replaced.add(worker)
        self.lost_incarnations.append(restoring + sum(float(row["t_unix"]) > self._switch_killed_at for row in done))
        arguments = list(self._arguments(worker))
        arguments[arguments.index("--steps") + 1] = str(max(self._settings.steps - before, 1))
        self._workers[worker] = self._network.start_worker(worker, arguments, before)

    def _steps_of(self, worker: int) -> list[dict[str, str]]:
        """The rows of a killed worker's CSV file, which is renamed to make way for its successor's."""
        path = self._network.work / f"worker-{worker}.csv"
        if not path.exists():
            return []
        with path.open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if None not in row.values()]
        path.rename(path.with_name(f"worker-{worker}-incarnation-{len(self.played)}.csv"))
        return rows


def _process(event: Event) -> str:
    """The process that an event is about."""
    if event.worker is not None:
        return f"worker {event.worker}"
    return _switch(event) if event.action.of_switch else "controller"


def _switch(event: Event) -> str:
    """The name of the switch, in `Network.parts`, that an event restarts."""
    if event.rack is not None:
        return f"leaf{event.rack + 1}"
    return "root" if event.action is Action.RESTART_ROOT else "switch"
