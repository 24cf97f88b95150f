"""Deaths of workers, the controller and the switch in one training, and an account of every contribution.

python -m tests.torch.chaos DEATHS SEED
"""

from __future__ import annotations

from serene.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from serene.strategy import ASP, BSP, SSP, Quorum
from tests.controller.processes import SwitchProcess, until
from tests.torch.sharers import PATIENCE_S, Plant, said
from tests.torch.sharing import Ledger

WORKERS = 3
LANES = 320
STEPS_BETWEEN = 5  # of some worker, from one death to the next


class Chaos:
    """A training of so many workers, whose processes die as the seed says. kinds: worker, controller, switch."""

    def __init__(self, plant: Plant, seed: int, kinds: tuple[str, ...]) -> None:
        self.plant, self.kinds = plant, kinds
        self.random = random.Random(seed)
        self.processes: dict[int, subprocess.Popen[str]] = {}
        self.started = 0
        for _ in range(WORKERS):
            self._start_worker()

    def _start_worker(self) -> None:
        self.processes[self.started] = self.plant.start(self.started, steps=0, ledger=True)
        self.started += 1

    def _steps(self) -> int:
        return sum(len(self.plant.losses(number)) for number in self.processes)

    def goes_on(self, steps: int) -> None:
        """Until the workers have done so many more steps, all together, and none has ended."""
        goal = self._steps() + steps

        def there() -> bool:
            ended = [number for number, process in self.processes.items() if process.poll() is not None]
            assert not ended, [self.processes[number].communicate()[0] for number in ended]
            return self._steps() >= goal

        until(there, f"{goal} steps", PATIENCE_S)

    def die(self) -> str:
        """One death, and a new life."""
        kind = self.random.choice(self.kinds)
        if kind == "worker":
            number = self.random.choice(sorted(self.processes))
            process = self.processes.pop(number)
            process.kill()
            process.wait()
            self._start_worker()
        elif kind == "controller":
            self.plant.controller.kill()
            self.plant.start_controller()
            until(lambda: [job for job in self.plant.controller.client.jobs() if job.name], "it knows the job's name")
        else:
            lost = self.plant.controller.client.job(0).lost_sessions
            self.plant.switch.restart()

            def restored() -> bool:
                job = self.plant.controller.client.job(0)
                return job.lost_sessions > lost and job.state == "running" and not job.restoring

            until(restored, "the sums are restored", PATIENCE_S)
        return kind

    def swap(self) -> None:
        self.plant.controller.client.set_strategy(0, self.random.choice([BSP(), SSP(2), ASP(), Quorum(2)]))

    def end(self) -> int:
        """All leave. Returns how many contributions were under way when their processes died."""
        (self.plant.folder / "end").touch()
        said(*self.processes.values())
        results = [self.plant.saved(number) for number in self.processes]
        for result in results[1:]:
            np.testing.assert_array_equal(result.read, results[0].read)
            np.testing.assert_array_equal(result.parameters, results[0].parameters)
        values = len(results[0].read)
        sent, doubtful = np.zeros(values, np.int64), []
        for number in range(self.started):
            file = Path(f"{self.plant.folder}/worker-{number}.ledger")
            if not file.exists():  # it died before its first step
                continue
            if number in self.processes:
                sent += self.plant.saved(number).sent
                continue
            ledger = Ledger(file, values)
            sent += ledger.sent
            if (contribution := ledger.under_way) is not None:
                doubtful.append(contribution)
        account(results[0].read - sent, doubtful)
        return len(doubtful)


def account(left: np.ndarray, doubtful: list[np.ndarray]) -> None:
    """What is left of the sum when all that was sent for certain is taken off: in each slot, each contribution that was
    under way when its process died is in it once or not at all."""
    for first in range(0, len(left), LANES):
        slot = left[first : first + LANES].astype(np.float64)
        if not doubtful:
            np.testing.assert_array_equal(slot, 0)
            continue
        each = np.stack([contribution[first : first + LANES] for contribution in doubtful], axis=1).astype(np.float64)
        counted = np.round(np.linalg.lstsq(each, slot, rcond=None)[0])
        assert set(counted) <= {0.0, 1.0}, f"slot {first // LANES}: {counted}"
        np.testing.assert_array_equal(each @ counted, slot)


def main(deaths: int, seed: int) -> None:
    for library in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(library, "1")  # as in tests/conftest.py
    with tempfile.TemporaryDirectory() as folder:
        switch = SwitchProcess("embedded", Path(folder) / "switch.log")
        plant = Plant(switch, Path(folder))
        try:
            chaos = Chaos(plant, seed, ("worker", "worker", "worker", "controller", "switch"))
            began = time.monotonic()
            chaos.goes_on(30)
            for number in range(deaths):
                print(f"death {number + 1} of {deaths}: {chaos.die()}", flush=True)
                chaos.goes_on(STEPS_BETWEEN)
            doubtful = chaos.end()
            print(
                f"{deaths} deaths in {time.monotonic() - began:.0f} s, {doubtful} with a contribution under way: every "
                "contribution is accounted for, and all replicas are the same"
            )
        finally:
            plant.stop()
            switch.stop()


if __name__ == "__main__":
    if len(sys.argv) != 3 or not all(argument.isdecimal() for argument in sys.argv[1:]):
        raise SystemExit(f"DEATHS and SEED are {' and '.join(sys.argv[1:]) or 'missing'}: expected whole numbers")
    raise SystemExit(ended(lambda: main(*map(int, sys.argv[1:]))))
