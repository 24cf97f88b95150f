"""Plays the events of a run's plan: workers pause, die, join twice and are evicted, controllers and switches die."""

from __future__ import annotations

import random
from typing import Protocol as Interface

from serene.controller.coordinator import Coordinator
from serene.controller.jobs.job import Job, JobState
from serene.experiments.correctness.virtual.controller import VirtualController
from serene.experiments.correctness.virtual.plan import Happening, Plan, What
from serene.experiments.correctness.virtual.worker import Incarnation, Place, World
from serene.faults import Action, Event

WELCOMED_S = 0.3  # from the beginning of a job until its workers have their WELCOME, unless packets are lost
RESTARTS_AGAIN, RESTORED_S = 0.3, 5.0  # how often the switch restarts again, before its sums are restored perhaps
WRITES = 8  # at one of which a controller dies


class Run(World, Interface):
    """What events need of a run. next_too: whether the job after a deleted one is to be deleted, too."""

    controller: VirtualController
    next_too: bool

    async def delete_job(self, coordinator: Coordinator) -> None: ...
    def running(self, coordinator: Coordinator) -> Job | None: ...
    def lose_switch(self, number: int, away_s: float) -> None: ...
    def at_work(self, incarnation: Incarnation) -> bool: ...
    def holds_its_place(self, process: Incarnation) -> bool: ...


class Events:
    """The events that a plan still has. rng: the run's."""

    def __init__(self, run: Run, plan: Plan, rng: random.Random) -> None:
        self._run, self._plan, self._rng = run, plan, rng
        self._due: list[Event | Happening] = [*plan.faults.events, *plan.happenings]
        self._clock_steps = list(plan.clock_steps_s)

    def happen(self, place: Place) -> None:
        """Plays the events that are due now that a worker has finished an iteration."""
        if not self._due:
            return
        least = min(self._run.ledger.done)
        for event in list(self._due):
            if event.worker == place.id and event.iteration <= self._run.ledger.done[place.id]:
                self._due.remove(event)
                self._befall(place, event)
            elif event.worker is None and event.iteration <= least:
                self._due.remove(event)
                self._befall_all(event)

    def _befall_all(self, event: Event | Happening) -> None:
        if isinstance(event, Happening) and event.what is What.DELETED:
            self._run.controller.command(self._run.delete_job)
            self._run.next_too = True
            return
        if isinstance(event, Happening):
            return self._run.time.at(self._rng.uniform(0.0, WELCOMED_S), lambda: self._restart_switch(event.seconds))
        if self._clock_steps:
            step = self._clock_steps.pop()
            self._run.controller.clock_s += step
            self._run.happened["clock set back" if step < 0 else "clock set ahead"] += 1
        # Most of the time it dies when it is about to write. In plans with evictions it does not die in the middle of
        # anything: the next controller would take an evicted worker that was being admitted for one that has left.
        if What.EVICTED in {happening.what for happening in self._plan.happenings}:
            self._run.time.at(0.0, lambda: self._run.controller.die_in_quiet(event.seconds))
        elif self._rng.random() < 0.75:
            self._run.controller.die_at_write(self._rng.randint(1, WRITES), event.seconds)
        else:
            self._run.time.at(0.0, lambda: self._run.controller.die(event.seconds))

    def _befall(self, place: Place, event: Event | Happening) -> None:
        # The worker has just begun an iteration: an event that comes `soon` finds it computing, or exchanging.
        soon = self._plan.mean_s[place.id]
        if isinstance(event, Event):
            if event.action is Action.PAUSE_WORKER:
                self._run.happened["stood still"] += 1
                process = place.present.process
                process.still_until = max(process.still_until, self._run.time.now + event.seconds)
            else:
                self._run.time.at(soon, lambda: self._kill(place, event.seconds))
        elif event.what is What.JOINS_AGAIN:
            self._run.happened["joined again"] += 1
            place.present.joins_again = True
        elif event.what is What.GIVES_UP:
            place.present.gives_up = True
        elif event.what is What.SECOND_PROCESS:
            self._run.time.at(soon, lambda: self._second(place, event.seconds))
        elif event.what is What.TAKES_BACK:
            self._run.time.at(event.seconds, lambda: self._take_back(place))
        else:
            self._command_eviction(place.id, True)
            self._run.time.at(event.seconds, lambda: self._command_eviction(place.id, False))

    def _command_eviction(self, worker: int, evicted: bool) -> None:
        async def command(coordinator: Coordinator) -> None:
            job = self._run.running(coordinator)
            if job is not None and (worker in job.evicted()) != evicted:
                await coordinator.set_evicted(self._run.job, worker, evicted)
                self._run.happened["evicted" if evicted else "readmitted"] += 1

        self._run.controller.command(command)

    def _restart_switch(self, away_s: float) -> None:
        """Unless the job is just deleted."""
        job = self._run.controller.known(self._run.job)
        if job is not None:
            over = job.state is JobState.FINISHED
            self._run.happened["switch restarts when the job is over" if over else "switch restarts"] += 1
            switches = len(self._run.switches)
            self._run.lose_switch(self._rng.randrange(switches) if switches > 1 else 0, away_s)
            if self._rng.random() < RESTARTS_AGAIN:
                self._run.time.at(self._rng.uniform(away_s, away_s + RESTORED_S), lambda: self._restart_switch(away_s))

    def _kill(self, place: Place, away_s: float) -> None:
        incarnation = place.present
        if self._run.at_work(incarnation):
            self._run.happened["restarted"] += 1
            incarnation.die()
            place.start_after(away_s)

    def _second(self, place: Place, both_s: float) -> None:
        incarnation = place.present
        if self._run.at_work(incarnation):
            self._run.happened["second processes"] += 1
            place.start(udp_port=incarnation.host.udp_port + 1)
            self._run.time.at(both_s, lambda: self.end_first(incarnation, both_s))

    def _take_back(self, place: Place) -> None:
        older = [process for process in place.incarnations[:-1] if self._run.at_work(process)]
        if older and place.present.process.alive:
            self._run.happened["took its place back"] += 1
            older[0].take_back()

    def end_first(self, first: Incarnation, again_s: float) -> None:
        """Has the user end the first of two processes, as soon as another one has its place."""
        if not first.process.alive or first.leaving:
            return
        others = [incarnation for incarnation in first.place.incarnations if incarnation is not first]
        if any(other.process.alive and self._run.holds_its_place(other) for other in others):
            first.die()
        else:
            self._run.time.at(again_s, lambda: self.end_first(first, again_s))
