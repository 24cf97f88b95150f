"""Deaths of workers, the controller and the switch in one training, and an account of every contribution.

python -m tests.torch.chaos DEATHS SEED

24 workers train under ASP, in a job whose workers come and go. Each step takes a second, as with a large model. Every
1.6 seconds a process dies. Of 100 deaths 98 are workers', one is the controller's and one the switch's, in an order
that the seed determines. A dead worker is restarted at once, and begins with the others' parameters; no checkpoint is
read. Goodput is the steps per second during the deaths, relative to those without deaths, in half a minute before and
half a minute after. The time until a dead controller commands again, or a dead switch is restored, counts as lost by
that death. The rest of the lost time is the workers'.
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import os
import random
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from serene.arguments import Parser, whole
from serene.controller.status.model import JobStatus
from serene.strategy import ASP, BSP, SSP, Quorum
from tests.controller.processes import SwitchProcess, until
from tests.torch.local import PATIENCE_S, outputs
from tests.torch.sharers import Plant, Result
from tests.torch.sharing import Ledger, Settings, batch, network

WORKERS = 3
LANES = 320
STEPS_BETWEEN = 5  # of some worker, from one death to the next
JUST_NOW_S = 0.25  # a contribution may be lost with the switch for so long after its worker has read the answer

MANY, PLACES = 24, 32  # workers of the long form
EVERY_S = 1.6  # from one death to the next
QUIET_S = 30.0  # before and after the deaths
COMPUTE_S = 1.0
KINDS = ("worker",) * 98 + ("controller", "switch")
WIDTH = 76  # of the hidden layer: the parameters fill five slots
LONG: dict[str, Any] = {
    "workers": MANY,
    "places": PLACES,
    "minimum": 2,
    "evict_after": 2.0,
    "strategy": "asp",
    "width": WIDTH,
}
UNDISTURBED = 3  # trainings with other data, in which nothing dies


class Chaos:
    """A training of ``alive`` workers, whose processes die as the seed determines. kinds: worker, controller, switch.
    settings: of `tests.torch.sharing`."""

    def __init__(self, plant: Plant, seed: int, kinds: tuple[str, ...], alive: int = WORKERS, **settings: Any) -> None:
        self.plant, self.kinds, self.settings = plant, kinds, settings
        self.random = random.Random(seed)
        self.processes: dict[int, subprocess.Popen[str]] = {}
        self.started = 0
        self.ended: list[str] = []  # output of workers that ended by themselves
        self._steps_of_dead = 0
        self._repeated: list[np.ndarray] = []  # under way when a switch died
        self._lost: list[np.ndarray] = []  # over just before
        for _ in range(alive):
            self._start_worker()

    def _start_worker(self) -> None:
        self.processes[self.started] = self.plant.start(self.started, steps=0, ledger=True, **self.settings)
        self.started += 1

    def steps(self) -> int:
        """By all workers so far."""
        return self._steps_of_dead + sum(len(self.plant.losses(number)) for number in self.processes)

    def check_alive(self) -> None:
        """Starts workers that have ended by themselves again, as torchrun would, and notes why they ended."""
        for number in [number for number, process in self.processes.items() if process.poll() is not None]:
            self.ended.append(self.processes.pop(number).communicate()[0])
            self._steps_of_dead += len(self.plant.losses(number))
            self._start_worker()

    def goes_on(self, steps: int) -> None:
        """Until the workers have done so many more steps, all together."""
        goal = self.steps() + steps

        def there() -> bool:
            self.check_alive()
            return self.steps() >= goal

        until(there, f"{goal} steps", PATIENCE_S)

    @property
    def job(self) -> JobStatus:
        return next(job for job in self.plant.controller.client.jobs() if job.name == "training")

    def die(self) -> str:
        """One death, and a new life."""
        kind = self.random.choice(self.kinds)
        if kind == "worker":
            number = self.random.choice(sorted(self.processes))
            process = self.processes.pop(number)
            process.kill()
            process.communicate()
            self._steps_of_dead += len(self.plant.losses(number))
            self._start_worker()
        elif kind == "controller":
            self.plant.controller.kill()
            self.plant.start_controller()
            until(lambda: self.job, "it knows the job")
        else:
            lost = self.job.lost_sessions
            self.plant.switch.kill()
            if "strategy" in self.settings:  # not BSP, under which nothing is lost or repeated
                self._note_latest()
            self.plant.switch.start()

            def restored() -> bool:
                job = self.job
                return job.lost_sessions > lost and job.state == "running" and not job.restoring

            until(restored, "the sums are restored", PATIENCE_S)
        return kind

    def _note_latest(self) -> None:
        for number in self.processes:
            file = self._ledger(number)
            if file.exists():
                latest, under_way, ago_s = Ledger(file, self._values(file)).latest
                if under_way or ago_s < JUST_NOW_S:
                    (self._repeated if under_way else self._lost).append(latest)

    def _ledger(self, number: int) -> Path:
        return Path(f"{self.plant.folder}/worker-{number}.ledger")

    @staticmethod
    def _values(file: Path) -> int:
        return (file.stat().st_size // 4 - 2) // 3

    def swap(self) -> None:
        self.plant.controller.client.set_strategy(0, self.random.choice([BSP(), SSP(2), ASP(), Quorum(2)]))

    def end(self) -> tuple[Result, int]:
        """All leave. Returns a replica, and how many contributions were under way when their processes died."""

        def all_train() -> bool:
            self.check_alive()
            return all(self.plant.losses(number) for number in self.processes)

        until(all_train, "who was started last trains", PATIENCE_S)  # or it would find nobody, and wait for others
        (self.plant.folder / "end").touch()
        outputs([*self.processes.values()])
        results = [self.plant.saved(number) for number in self.processes]
        for result in results[1:]:
            np.testing.assert_array_equal(result.read, results[0].read)
            np.testing.assert_array_equal(result.parameters, results[0].parameters)
        values = len(results[0].read)
        sent, doubtful = np.zeros(values, np.int64), []
        for number in range(self.started):
            file = self._ledger(number)
            if not file.exists():  # it died before its first step
                continue
            if number in self.processes:
                sent += self.plant.saved(number).sent
                continue
            ledger = Ledger(file, values)
            sent += ledger.sent
            if (contribution := ledger.under_way) is not None:
                doubtful.append(contribution)
        account(results[0].read - sent, [*doubtful, *self._repeated], self._lost)
        return results[0], len(doubtful)


def account(left: np.ndarray, doubtful: Sequence[np.ndarray], lost: Sequence[np.ndarray] = ()) -> None:
    """What is left of the sum, modulo 2^32, when all that was sent for certain is taken off: in each slot, each
    contribution that was under way when its process or the switch died is in it once or not at all, and each that was
    read just before a switch died may be missing. One that is named several times was under way several times."""
    left = (left.astype(np.int64) + 2**31) % 2**32 - 2**31
    most, least = Counter(each.tobytes() for each in doubtful), Counter(each.tobytes() for each in lost)
    kinds = list(dict.fromkeys([*most, *least]))
    for first in range(0, len(left), LANES):
        slot = left[first : first + LANES].astype(np.float64)
        if not kinds:
            np.testing.assert_array_equal(slot, 0)
            continue
        columns = [np.frombuffer(each, np.int32)[first : first + LANES] for each in kinds]
        each = np.stack(columns, axis=1).astype(np.float64)
        counted = np.round(np.linalg.lstsq(each, slot, rcond=None)[0])
        for kind, often in zip(kinds, counted, strict=True):
            assert -least[kind] <= often <= most[kind], f"slot {first // LANES}: {counted}"
        np.testing.assert_array_equal(each @ counted, slot)


def loss_of(parameters: np.ndarray) -> float:
    """Of the long form's network with these parameters, float32[values], on points that nobody trained with."""
    model = network(Settings(out="", width=WIDTH))
    nn.utils.vector_to_parameters(torch.from_numpy(parameters), model.parameters())
    batches = [batch(torch.Generator().manual_seed(1_000_000 + number)) for number in range(256)]
    points, labels = torch.cat([one[0] for one in batches]), torch.cat([one[1] for one in batches])
    with torch.no_grad():
        return float(nn.functional.cross_entropy(model(points), labels))


def undisturbed(plant: Plant, run: int, steps: int) -> float:
    """The final loss of a training with data of its own in which nothing dies. steps: by all workers together. Its
    steps take as long: faster ones, of 24 workers on two cores, read what is older, and end at a larger loss."""
    first = 100_000 * (run + 1)
    numbers = range(first, first + MANY)
    settings = {**LONG, "steps": steps // MANY, "compute_s": COMPUTE_S, "job": f"undisturbed {run}"}
    workers = [plant.start(number, **settings) for number in numbers]
    outputs(workers, patience_s=2 * steps / MANY * COMPUTE_S + PATIENCE_S)
    return loss_of(plant.saved(first).parameters)


def rate(chaos: Chaos, seconds: float) -> float:
    """Steps a second, by all workers together, where nothing dies."""
    before, began = chaos.steps(), time.monotonic()
    while time.monotonic() < began + seconds:
        time.sleep(0.5)
        chaos.check_alive()
    return (chaos.steps() - before) / (time.monotonic() - began)


def main(deaths: int, seed: int) -> None:
    for library in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(library, "1")  # as in tests/conftest.py
    with tempfile.TemporaryDirectory() as folder:
        switch = SwitchProcess("embedded", Path(folder) / "switch.log", ports=PLACES)
        plant = Plant(switch, Path(folder))
        try:
            chaos = Chaos(plant, seed, KINDS, MANY, compute_s=COMPUTE_S, **LONG)
            chaos.goes_on(5 * MANY)
            quiet = [rate(chaos, QUIET_S)]
            print(f"{quiet[0]:.1f} steps a second while nothing dies", flush=True)
            before, began, died = chaos.steps(), time.monotonic(), Counter[str]()
            done_in, lasted = Counter[str](), Counter[str]()  # steps and milliseconds in deaths, by kind
            for number in range(deaths):
                while time.monotonic() < began + number * EVERY_S:
                    time.sleep(0.02)
                chaos.check_alive()
                steps, at = chaos.steps(), time.monotonic()
                died[kind := chaos.die()] += 1
                done_in[kind] += chaos.steps() - steps
                lasted[kind] += round(1e3 * (time.monotonic() - at))
                if (number + 1) % 50 == 0:
                    took = time.monotonic() - began
                    share = (chaos.steps() - before) / took / quiet[0]
                    print(f"{number + 1} of {deaths} deaths, {took:.0f} s, goodput {share:.3f}", flush=True)
            done, took = chaos.steps() - before, time.monotonic() - began
            chaos.goes_on(5 * MANY)
            quiet.append(rate(chaos, QUIET_S))
            total = chaos.steps()
            result, doubtful = chaos.end()
            loss = loss_of(result.parameters)
            kinds = ", ".join(f"{kind} {often}" for kind, often in sorted(died.items()))
            print(
                f"{deaths} deaths in {took:.0f} s ({kinds}), {doubtful} workers with a contribution under way: every "
                "contribution is accounted for, and all replicas are the same"
            )
            for text in chaos.ended:
                print(f"ended by itself: {text.strip().splitlines()[-1:]}")
            print(
                f"goodput {done / took / statistics.mean(quiet):.3f}: {done} steps, {done / took:.1f} a second; while "
                f"nothing dies {quiet[0]:.1f} before and {quiet[1]:.1f} after",
                flush=True,
            )
            at_once = statistics.mean(quiet)  # steps a second
            lost = {kind: lasted[kind] / 1e3 - done_in[kind] / at_once for kind in died if kind != "worker"}
            lost["worker"] = took - done / at_once - sum(lost.values())
            each = ", ".join(f"{kind} {often}: {lost[kind]:.1f} s" for kind, often in sorted(died.items()))
            print(f"time lost, of all {MANY} workers together, by what died: {each}", flush=True)
            (plant.folder / "end").unlink()
            seeds = [undisturbed(plant, run, total) for run in range(UNDISTURBED)]
            print(f"loss {loss:.5f} after {total} steps; undisturbed {', '.join(f'{each:.5f}' for each in seeds)}")
        finally:
            plant.stop()
            switch.stop()


if __name__ == "__main__":
    parser = Parser("Kills workers, the controller and the switch during one shared training: make chaos.")
    parser.add_argument("deaths", type=whole(1), help="number of deaths, one every 1.6 s")
    parser.add_argument("seed", type=whole(0), help="random seed")
    given = parser.parse_args()
    raise SystemExit(ended(lambda: main(given.deaths, given.seed)))
