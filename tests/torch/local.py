"""`serenectl up --local` for tests, and processes that train through it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from serene.controller.http.client import ControllerClient
from tests.controller.processes import ROOT
from tests.ports import some_port, some_ports
from tests.support.warm import warm_python
from tests.support.warm_process import run

PATIENCE_S = 240.0


@dataclass(frozen=True)
class Local:
    """A local switch and its controller. environment: for `serenectl` and the programs that use them."""

    client: ControllerClient
    switch: str  # HOST:PORT of its P4Runtime server
    folder: Path  # the folder of their files
    environment: Mapping[str, str]

    def serenectl(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run(["-m", "serene.controller", *arguments], ROOT, dict(self.environment), PATIENCE_S)

    @property
    def http(self) -> str:
        """HOST:PORT of the controller."""
        return self.client.url.removeprefix("http://")

    @property
    def starts(self) -> list[str]:
        """The arguments of `serenectl` that start both."""
        return ["up", "--local", "--switch", self.switch, "--http", self.http]

    def up(self, *options: str) -> None:
        # On a busy machine a switch may take longer to answer than a user would wait.
        done = self.serenectl(*self.starts, "--wait", "60", *options)
        assert done.returncode == 0, done.stderr + done.stdout


def there(folder: Path) -> Local:
    """Chooses addresses for a switch and a controller that nothing else uses; starts neither."""
    grpc, http = some_ports(2)
    url = f"http://127.0.0.1:{http}"
    environment = {
        **os.environ,
        "XDG_RUNTIME_DIR": str(folder),
        "SERENE_CONTROLLER": url,
        "OMP_NUM_THREADS": "1",
    }
    return Local(ControllerClient(url), f"127.0.0.1:{grpc}", folder / "serene", environment)


@contextmanager
def local_switch(folder: Path, *options: str) -> Iterator[Local]:
    local = there(folder)
    try:
        local.up(*options)
        yield local
    finally:
        down = local.serenectl("down", "--force")
        local.client.close()
    assert down.returncode == 0, down.stderr
    assert "Traceback" not in "".join(log.read_text() for log in local.folder.glob("*.log"))


def ranks(workers: int) -> list[dict[str, str]]:
    """The environment variables that torchrun would set, for each rank."""
    port = str(some_port())
    common = {"WORLD_SIZE": str(workers), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return [{**common, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(workers)]


def start_ranks(
    local: Local, workers: int, arguments: Sequence[str], given: Sequence[Mapping[str, str]] = ()
) -> list[subprocess.Popen[str]]:
    """Starts ``python ARGUMENTS`` once for each rank. given: further environment variables of each rank."""
    return [
        subprocess.Popen(
            [warm_python(), "-W", "ignore::FutureWarning", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env={**local.environment, **rank, **more},
        )
        for rank, more in zip(ranks(workers), given or [{}] * workers, strict=True)
    ]


def outputs(
    processes: Sequence[subprocess.Popen[str]], expect: int | None = 0, patience_s: float = PATIENCE_S
) -> list[str]:
    """Waits until all have ended, and returns what each has printed. expect: the exit status that each has to have;
    None for any."""
    texts = []
    try:
        for process in processes:
            texts.append(process.communicate(timeout=patience_s)[0])
            assert expect is None or process.returncode == expect, texts
    except subprocess.TimeoutExpired:
        states = [process.poll() for process in processes]
        for process in processes:
            process.kill()
        texts += [process.communicate()[0] for process in processes[len(texts) :]]
        raise AssertionError(f"not over after {patience_s:g} s: statuses {states}, outputs {texts}") from None
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return texts
