"""The programs in `examples/` learn the same through the switch as with gloo."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.commands import ROOT, output
from tests.controller.processes import until
from tests.support.warm import warm_python
from tests.torch.local import PATIENCE_S, Local, outputs, start_ranks

STEPS = {"restarts": 80, "sharded": 60}  # of others 200
RANKS = {"restarts": 4, "shared": 4}  # of others 2
# The largest difference between two losses, as a part of the loss. With two ranks the switch's sums are off by 2^-26 of
# a block's largest value, gloo's by 2^-24 of themselves; the rest is what the steps make of it.
NEAR = {"restarts": 1e-5, "sharded": 1e-5, "lightning_ddp": 1e-4, "accelerate_ddp": 1e-4}


def torchrun(local: Local, program: str, *arguments: str) -> str:
    command = [warm_python(), "-m", "torch.distributed.run", "--nproc-per-node", str(RANKS.get(program, 2))]
    command += ["--max-restarts", "1", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
    command += ["--master-port", "0", f"examples/{program}.py", *arguments]
    return output(*command, environment={**local.environment, "PYTHON_EXEC": warm_python()})


def losses(local: Local, program: str, backend: str, optimiser: str, folder: Path, *arguments: str) -> np.ndarray:
    out = folder / f"{backend}.json"
    steps = str(STEPS.get(program, 200))
    given = ["--steps", steps, "--backend", backend, "--optimiser", optimiser, "--losses", str(out)]
    torchrun(local, program, *given, *arguments)
    return np.array(json.loads(out.read_text()))


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("program", "optimiser"), [("sharded", "adam"), ("lightning_ddp", "sgd"), ("accelerate_ddp", "adam")]
)
def test_example_losses_equal_gloos(local: Local, tmp_path: Path, program: str, optimiser: str) -> None:
    """That of ddp.py: tests/endtoend/test_process_group.py; DDP in other ways: test_collectives.py."""
    if program.endswith("_ddp"):
        library = program.removesuffix("_ddp")
        pytest.importorskip(library, reason=f"needs {library} (pip install {library})")
    theirs = losses(local, program, "gloo", optimiser, tmp_path)
    ours = losses(local, program, "serene", optimiser, tmp_path)
    assert len(ours) == len(theirs) == STEPS.get(program, 200)
    assert theirs[-10:].mean() < 0.9 * theirs[0], "it learns nothing"
    np.testing.assert_allclose(ours, theirs, rtol=NEAR[program])
    until(lambda: {job.state.value for job in local.client.jobs()} == {"finished"}, "the job has ended")


@pytest.mark.parametrize("program", ["ddp", "restarts"])
def test_gloo_threads_end_with_the_process_group(local: Local, tmp_path: Path, program: str) -> None:
    """If a DistributedDataParallel model lives longer, it waits for them while it holds the GIL, which they need to
    free the last tensor (docs/pytorch.md, At the end)."""
    arguments = [f"examples/{program}.py", "--backend", "serene", "--steps", "3"]
    if program == "restarts":
        arguments += ["--checkpoint", str(tmp_path / "checkpoint.pt")]
    for text in outputs(start_ranks(local, 2, ["-m", "tests.torch.ranks", "gloo_threads", *arguments])):
        assert text.splitlines()[-1] == "0 threads of gloo's", text


@pytest.mark.timeout(600)
def test_torchrun_restart_resumes_from_checkpoint(local: Local, tmp_path: Path) -> None:
    """A rank kills itself at step 70: the others fail, all are restarted, and resume from step 50."""
    theirs = losses(local, "restarts", "gloo", "adam", tmp_path, "--checkpoint", str(tmp_path / "gloo.pt"))
    out = tmp_path / "serene.json"
    steps = str(STEPS["restarts"])
    arguments = ["--steps", steps, "--optimiser", "adam", "--checkpoint", str(tmp_path / "serene.pt")]
    output = torchrun(local, "restarts", *arguments, "--die-at", "70", "--losses", str(out))
    assert "resumes from step 50" in output
    np.testing.assert_allclose(json.loads(out.read_text()), theirs, rtol=NEAR["restarts"])


def test_shared_training_example_ends_with_equal_parameters(local: Local) -> None:
    """Started by torchrun, which shared training does not need."""
    assert sorted(ended_alike(torchrun(local, "shared"), 4)) == [0, 1, 2, 3]


def ended_alike(text: str, workers: int) -> list[int]:
    """The numbers of so many workers, which have printed at the end that they learned, and have the same parameters."""
    results = re.findall(r"worker (\d): loss (\S+), sum of the parameters (-?\d+\.\d{9})", text)
    assert len(results) == workers, text
    assert len({parameters for _, _, parameters in results}) == 1, text
    assert all(float(loss) < 0.9 for _, loss, _ in results), text
    return [int(worker) for worker, _, _ in results]


@pytest.mark.timeout(600)
def test_torchrun_restarts_a_killed_worker(local: Local, tmp_path: Path) -> None:
    """The worker begins again with the parameters of the others, which continue meanwhile. Another worker joins without
    torchrun."""
    go = tmp_path / "go"
    environment = {**local.environment, "PYTHON_EXEC": warm_python(), "PYTHONUNBUFFERED": "1"}
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "1", "--max-restarts", "3"]

    def start(*arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [warm_python(), *arguments, "-m", "tests.torch.held", "100", str(go), "examples/elastic.py"],
            cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def taking_part() -> Counter[str]:
        jobs = [job for job in local.client.jobs() if job.name == "elastic"]
        return Counter(worker.state.value for job in jobs for worker in job.workers)

    started = [start(*torchrun) for _ in range(4)]
    try:
        until(lambda: len(list(tmp_path.glob("go.*"))) == 4, "step 100", PATIENCE_S)
        os.kill(int(next(tmp_path.glob("go.*")).suffix[1:]), signal.SIGKILL)
        until(lambda: taking_part() == {"running": 4, "evicted": 1, "left": 3}, "it is started again", PATIENCE_S)
        started.append(start())
        until(lambda: taking_part()["running"] == 5, "another one joins", PATIENCE_S)
        go.touch()
        texts = [process.communicate(timeout=PATIENCE_S)[0] for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    assert [process.returncode for process in started] == [0] * 5, texts
    ended_alike("".join(texts), 5)
