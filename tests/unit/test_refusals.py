"""Bad texts of users and the one line that refuses them: a table in refusals.txt.

A section is named after what reads its texts. Each of its lines has a text, an arrow, and what the message has to have
in it; ``\\n`` in a text ends a line. Refusals that need more than a text are tested where they are raised.
"""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from serene import faults, strategy
from serene.client.allreduce.scale import Scale
from serene.errors import SereneError
from serene.experiments.network_study import command as network_study
from serene.experiments.network_study import question_command
from serene.experiments.performance import swaps
from serene.experiments.run import cli
from serene.experiments.straggler_study.cell import Cell
from serene.torch import DistributedOptimizer
from serene.workers import server, stragglers, train
from tests.suites import __main__ as suites

TABLE = Path(__file__).with_name("refusals.txt")


def command(main: Callable[[], int], text: str, *, out: bool = True) -> None:
    """Runs a command line, with --out if it has that option, and raises its refusal; no result may be shown or
    written."""
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stdout(io.StringIO()) as shown,
        contextlib.redirect_stderr(io.StringIO()) as said,
    ):
        place = Path(folder, "out")
        with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit, match="2"):
            patch.setattr("sys.argv", ["command", *shlex.split(text), *(["--out", str(place)] if out else [])])
            raise SystemExit(main())
        assert not place.exists() and "┃" not in shown.getvalue()
    assert said.getvalue().startswith("error: ")
    raise SereneError(said.getvalue().removesuffix("\n"))


def optimizer(text: str) -> None:
    plain = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    DistributedOptimizer(plain, **{"job": "job", "workers": 1, **json.loads(text)})


READERS: dict[str, Callable[[str], object]] = {
    "command line of a run": lambda text: command(cli.main, text),
    "fault file": faults.parse,
    "fault file of workers 0 to 3": lambda text: faults.parse(text).check(4),
    "fault file of two racks": lambda text: faults.parse(text).check(8, 2),
    "strategy": strategy.parse,
    "strategy in JSON": lambda text: strategy.strategy_from_dict(json.loads(text)),
    "strategy of workers 0 to 3": lambda text: strategy.parse(text).compile(range(4)),
    "straggler profile": stragglers.parse,
    "straggler profile of workers 0 to 3": lambda text: stragglers.check_workers(stragglers.parse(text), 4),
    "scale": Scale.of,
    "command line of a worker": lambda text: command(train.main, text),
    "command line of a parameter server": lambda text: command(server.main, text),
    "arguments of DistributedOptimizer": optimizer,
    "cell of the straggler study": lambda text: Cell.from_dict({**Cell().to_dict(), **json.loads(text)}).check(),
    "command line of serene-netstudy": lambda text: command(question_command.main, text, out=False),
    "command line of the network study": lambda text: command(network_study.main, text),
    "command line of make swaps": lambda text: command(swaps.main, text),
    "command line of make p4-suites": lambda text: command(suites.main, text, out=False),
}


def refusals() -> Iterator[tuple[str, str, str]]:
    """(section, text, what the message has in it)"""
    section = ""
    for line in TABLE.read_text().splitlines():
        if line.startswith("# "):
            section = line.removeprefix("# ")
        elif line:
            text, _, said = line.partition(" => ")
            assert said, line
            yield section, text.replace("\\n", "\n"), said.strip()


@pytest.mark.parametrize(("section", "text", "said"), list(refusals()))
def test_refusal_names_valid_input_in_one_line(section: str, text: str, said: str) -> None:
    with pytest.raises(SereneError) as refused:
        READERS[section](text)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
