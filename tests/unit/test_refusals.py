"""Bad texts of users and the one line that refuses them: a table in refusals.txt.

A section is named after what reads its texts. Each of its lines has a text, an arrow, and what the message has to have
in it; ``\\n`` in a text ends a line. Refusals that need more than a text are tested where they are raised.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import shlex
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from serene import faults, strategy
from serene.client import Client, FrameTransport, ShmTransport, UdpTransport
from serene.client.allreduce.blocks import Layout
from serene.client.allreduce.scale import Scale
from serene.client.transport.transport import TransportError
from serene.controller import automatic
from serene.controller.commands.cli import main as serenectl_main
from serene.controller.http.client import ControllerClient
from serene.controller.jobs.elastic import elastic
from serene.controller.settings import settings
from serene.embedded.program.crcs import parse_crc
from serene.errors import SereneError
from serene.experiments.correctness import soak
from serene.experiments.network_study import __main__ as network_study
from serene.experiments.network_study import question_command
from serene.experiments.network_study.exchange import SwitchSizes
from serene.experiments.network_study.flows.clos import Clos
from serene.experiments.network_study.methods import method
from serene.experiments.performance import any_size, one_machine, swaps
from serene.experiments.run import cli
from serene.experiments.straggler_study import regret
from serene.experiments.straggler_study.cell import Cell
from serene.program import BUILD, Program, chosen_program
from serene.racks import Racks
from serene.torch import DistributedOptimizer
from serene.workers import architectures, data, packets, server, stragglers, train
from tests.controller.planning import new_jobs
from tests.suites import __main__ as suites
from tests.support.golden import rows

TABLE = Path(__file__).with_name("refusals.txt")
TWO_RACKS = "root=127.0.0.1:9559,leaf1=127.0.0.1:9560,leaf2=127.0.0.1:9561"


def command(main: Callable[[], int], text: str, *, out: bool = True) -> None:
    """Runs a command line, with --out if it has that option, and raises its refusal; no result may be shown or
    written."""
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stdout(io.StringIO()) as shown,
        contextlib.redirect_stderr(io.StringIO()) as errors,
    ):
        place = Path(folder, "out")
        with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit, match="2"):
            patch.setattr("sys.argv", ["command", *shlex.split(text), *(["--out", str(place)] if out else [])])
            raise SystemExit(main())
        assert not place.exists() and "┃" not in shown.getvalue()
    assert errors.getvalue().startswith("error: ")
    raise SereneError(errors.getvalue().removesuffix("\n"))


def optimizer(text: str) -> None:
    plain = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    DistributedOptimizer(plain, **{"job": "job", "workers": 1, **json.loads(text)})


def serenectl(text: str) -> None:
    shown, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(errors), pytest.raises(SystemExit, match="2"):
        serenectl_main(text.split())
    assert not shown.getvalue() and errors.getvalue().startswith("error: ")
    raise SereneError(errors.getvalue().removesuffix("\n"))


def cells_of_a_comparison(text: str, *, mininet: bool = False) -> None:
    models, _, names = text.partition(";")
    regret.chosen_cases(models, names, mininet=mininet)


def automatic_strategy(text: str) -> None:
    name, _, parameters = text.partition(" ")
    automatic.load(name, json.loads(parameters or "{}"))


def job(text: str) -> None:
    workers, scale, limit = json.loads(text)
    new_jobs().create(workers, strategy.BSP(), scale=scale, limit=limit)


def elastic_settings(text: str) -> None:
    places, minimum, evict_after = json.loads(text)
    elastic(4, places, minimum, evict_after, 32, 1)


def token(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SERENE_TOKEN", text)
        ControllerClient("http://127.0.0.1:1")


def opened(transport: Callable[..., object], text: str, **usual: object) -> None:
    """Raises what refuses the arguments. A socket that was left open warns when nothing refers to it any more."""
    refusal = ""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        try:
            transport(**{**usual, **json.loads(text)})
        except TransportError as error:
            refusal = str(error)
        gc.collect()
    if refusal:
        raise TransportError(refusal)


HERE, THERE = ("127.0.0.1", 0), ("127.0.0.1", 9)


READERS: dict[str, Callable[[str], object]] = {
    "command line of a run": lambda text: command(cli.main, text),
    "fault file": faults.parse,
    "fault file of workers 0 to 3": lambda text: faults.parse(text).check(4),
    "fault file of two racks": lambda text: faults.parse(text).check(8, 2),
    "strategy": strategy.parse,
    "strategy in JSON": lambda text: strategy.strategy_from_dict(json.loads(text)),
    "strategy of workers 0 to 3": lambda text: strategy.parse(text).compile(range(4)),
    "command line of serenectl": serenectl,
    "settings of a controller": lambda text: settings(**json.loads(text)),
    "settings of a controller of two racks": lambda text: settings(**{"switch": TWO_RACKS, **json.loads(text)}),
    "automatic strategy": automatic_strategy,
    "elastic settings of 4 workers": elastic_settings,
    "workers, scale and limit of a job": job,
    "token of a controller": token,
    "address of a controller": ControllerClient,
    "model": lambda text: architectures.size(text, (1, 28, 28), 10),
    "data set": data.load,
    "packets": packets.check_packets,
    "straggler profile": stragglers.parse,
    "straggler profile of workers 0 to 3": lambda text: stragglers.check_workers(stragglers.parse(text), 4),
    "scale": Scale.of,
    "command line of a worker": lambda text: command(train.main, text),
    "command line of a parameter server": lambda text: command(server.main, text),
    "arguments of DistributedOptimizer": optimizer,
    "cell of the straggler study": lambda text: Cell.from_dict({**Cell().to_dict(), **json.loads(text)}).check(),
    "strategies of the straggler study's comparison": regret.automatic_of,
    "cells of the straggler study's comparison": cells_of_a_comparison,
    "cells of the comparison in Mininet": lambda text: cells_of_a_comparison(text, mininet=True),
    "layers, ports and groups of a Clos network": lambda text: Clos(*json.loads(text)),
    "method of the network study": method,
    "sizes of a simulated switch": lambda text: SwitchSizes(*json.loads(text)),
    "command line of serene-netstudy": lambda text: command(question_command.main, text, out=False),
    "command line of the network study": lambda text: command(network_study.main, text),
    "command line of any_size": lambda text: command(any_size.main, text),
    "command line of one_machine": lambda text: command(one_machine.main, text, out=False),
    "command line of make soak": lambda text: command(soak.main, text, out=False),
    "command line of make swaps": lambda text: command(swaps.main, text),
    "command line of make p4-suites": lambda text: command(suites.main, text, out=False),
    "transport of a client": lambda text: Client(json.loads(text), 0, 0, 5),
    "arguments of a UDP transport": lambda text: opened(UdpTransport, text, switch_ip="127.0.0.1"),
    "arguments of a transport of frames": lambda text: opened(FrameTransport, text, worker=0, local=HERE, switch=THERE),
    "path of a shared-memory port": lambda text: ShmTransport(0, json.loads(text)),
    "unit of a collective": lambda text: Layout(4, 320, 8, int(text)),
    "limit of a collective": lambda text: Layout(4, 320, 8).with_limit(float(text)),
    "lanes of a pool of 4 workers": lambda text: Layout(4, int(text)),
    "program": Program.load,
    "program of one switch": lambda text: chosen_program(BUILD / f"{text}.json", None),
    "slots of a program": lambda text: Program.load("serene").with_slots(int(text)),
    "CRC of a calculation": parse_crc,
    "worker of racks of 2, 0 and 3": Racks.of([2, 0, 3]).worker,
    "racks": lambda text: Racks.of(json.loads(text)),
}


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("section", "text", "message"), list(rows(TABLE)))
def test_refusal_names_valid_input_in_one_line(section: str, text: str, message: str) -> None:
    with pytest.raises(SereneError) as refused:
        READERS[section](text)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
