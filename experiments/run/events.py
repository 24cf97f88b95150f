"""Plays the events of a fault file in a run: processes that are paused, or killed and restarted."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Sequence
from typing import Any

from controller.status.model import JobStatus
from experiments.run.network import Network, WorkerProcess
from experiments.run.settings import Settings
from serene.client.restoration import ROUNDS
from serene.clock import unix_s
from serene.faults import Action, Event

Json = dict[str, Any]


class Events:
    """``workers`` is the run's own list, by id; a worker that starts anew takes its place in it.

    ``arguments``: of a worker's program, for one that starts anew.
    """

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
        self._waiting = sorted(settings.faults.events, key=lambda event: event.iteration)
        self._ends: list[tuple[float, Event]] = []  # when, in monotonic seconds
        self._switch_began = 0.0  # Unix time: what was contributed before is not in its counters
        self.played: list[Json] = []
        self.lost_incarnations: list[
            int
        ] = []  # steps that workers had done when they were killed, in the present session

    @property
    def under_way(self) -> bool:
        return bool(self._ends)

    @property
    def away(self) -> set[int]:
        """Workers that were killed and have not started anew yet."""
        return {
            event.worker
            for _, event in self._ends
            if event.action is Action.RESTART_WORKER and event.worker is not None
        }

    @property
    def never(self) -> list[str]:
        """Events for which the run was too short."""
        return [str(event) for event in self._waiting]

    def look(self, job: JobStatus) -> None:
        """Begins what is due at the iterations that the controller's status tells."""
        iterations = [worker.iteration for worker in job.workers]
        for event in list(self._waiting):
            here = min(iterations) if event.worker is None else iterations[event.worker]
            if here >= event.iteration and not (self._under_way_for(event) or self._over(event)):
                self._waiting.remove(event)
                self._begin(event)
                self.played.append({"t_unix": unix_s(), "event": str(event)})
                self._ends.append((time.monotonic() + event.seconds, event))

    def _under_way_for(self, event: Event) -> bool:
        """Whether something happens to its process already: the next thing waits for the end of that."""
        return any(_process(other) == _process(event) for _, other in self._ends)

    def _over(self, event: Event) -> bool:
        return event.worker is not None and self._workers[event.worker].poll() is not None

    def end_due(self) -> None:
        """Ends what has lasted long enough."""
        for ending in list(self._ends):
            when, event = ending
            if time.monotonic() >= when:
                self._end(event)
                self._ends.remove(ending)

    def _begin(self, event: Event) -> None:
        if event.action.of_switch:
            self._network.parts[_switch(event)].kill()
            self._switch_began = unix_s()
            self.lost_incarnations.clear()
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
                self._workers[event.worker].go_on()
            else:
                self._replace(event.worker)

    def _replace(self, worker: int) -> None:
        """A new process does the steps that the killed one has left undone."""
        done = self._steps_of(worker)
        # A session that follows a lost one begins with iterations of its own, to put the sums back.
        before = ROUNDS if self._switch_began else 0
        self.lost_incarnations.append(before + sum(float(row["t_unix"]) > self._switch_began for row in done))
        arguments = list(self._arguments(worker))
        arguments[arguments.index("--steps") + 1] = str(max(self._settings.steps - len(done), 1))
        self._workers[worker] = self._network.start_worker(worker, arguments)

    def _steps_of(self, worker: int) -> list[dict[str, str]]:
        """Of a worker that was killed; the file makes way for the next one's."""
        path = self._network.work / f"worker-{worker}.csv"
        if not path.exists():
            return []
        with path.open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if None not in row.values()]
        path.rename(path.with_name(f"worker-{worker}-incarnation-{len(self.played)}.csv"))
        return rows


def _process(event: Event) -> str:
    """Whom it befalls."""
    if event.worker is not None:
        return f"worker {event.worker}"
    return _switch(event) if event.action.of_switch else "controller"


def _switch(event: Event) -> str:
    """The part of the network that it restarts."""
    if event.rack is not None:
        return f"leaf{event.rack + 1}"
    return "root" if event.action is Action.RESTART_ROOT else "switch"
