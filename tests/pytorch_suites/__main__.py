"""``python -m tests.pytorch_suites``: PyTorch's own tests on gloo, and those that pass there on serene.

    make pytorch-suites                    those that come with PyTorch
    make pytorch-suites PYTORCH=~/pytorch  and, of a checkout of that version, those in CHECKOUT

Prints how many passed on each, and why the others did not. Writes docs/results/pytorch-suites.csv and the table of
docs/pytorch-suites.md, in which suites that did not run now keep their rows. The exit status says whether there is a
difference whose reason is not in KNOWN.
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import csv
import importlib.util
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from serene.arguments import Parser
from serene.experiments.shared import page_tables
from tests.controller.processes import ROOT
from tests.pytorch_suites.playing import Ended, Suite, play, shipped
from tests.torch.local import local_switch

RESULTS = ROOT / "docs/results/pytorch-suites.csv"
PAGE = ROOT / "docs/pytorch-suites.md"
COLUMNS = ("pytorch", "suite", "test", "gloo", "serene", "why")
SHIPPED = (
    shipped(["Distributed"], "distributed_test, 3 ranks", 3),
    shipped(["UnderAutograd", "Comparison"], "ddp_under_dist_autograd_test"),
    shipped(["Distributed"], "distributed_test, 3 ranks, TORCH_DISTRIBUTED_DEBUG=DETAIL", 3, "DETAIL"),
    shipped(["Distributed"], "distributed_test, 4 ranks", 4),
)
CHECKOUT = (
    "test_c10d_functional_native", "test_functional_api", "_composable/test_replicate", "test_device_mesh",
    "_composable/fsdp/test_fully_shard_training", "tensor/test_dtensor", "tensor/test_redistribute",
)  # fmt: skip
WORDS = "lists the words of gloo's and NCCL's errors; that of `serene` names the rank that has left"
# By how a test's name begins and what its failure contains: the reason of a difference.
KNOWN = (
    ("Distributed.test_get_backend", "", "expects the name of the backend to be gloo"),
    ("Distributed.test_monitored_barrier", "", "`dist.monitored_barrier` refuses every backend but gloo by name"),
    ("NormalGlooMultiPgTest.test_collective_with_resiliency", "rank 2 of the group has left it", WORDS),
)


def of_torchft(folder: Path) -> Suite | None:
    """torchft's own tests of its group over gloo, with float32 where they have integers; None where it is not
    installed. folder: for the file."""
    found = importlib.util.find_spec("torchft")
    if found is None or found.origin is None:
        return None
    text = Path(found.origin).with_name("process_group_test.py").read_text()
    imports, first, rest = text.partition("\n\ndef ")
    in_float32 = "\nimport functools\n\ntensor_of = functools.partial(torch.tensor, dtype=torch.float32)\n"
    file = folder / "torchft_process_group_test.py"
    file.write_text(imports + in_float32 + first + rest.replace("torch.tensor(", "tensor_of("))
    return Suite("process_group_test of torchft", file, "(gloo or functional) and not baby")


def why_known(test: str, failure: str) -> str | None:
    return next((why for start, part, why in KNOWN if test.startswith(start) and part in failure), None)


def rows(suite: Suite) -> Iterator[dict[str, str]]:
    """A row for each test that gloo passes or fails. What it skips needs a GPU or another backend."""
    with tempfile.TemporaryDirectory() as folder, local_switch(Path(folder)) as local:
        gloo = play("gloo", suite, local.environment)
        passed = [test for test, ended in gloo.items() if ended.status == "passed"]
        ours = play("serene", suite, local.environment, passed) if passed else {}
    for test, theirs in sorted(gloo.items()):
        if theirs.status != "skipped":
            mine = ours.get(test, Ended("not run"))
            why = "" if mine.status == "passed" else why_known(test, mine.why) or mine.why or theirs.why
            columns = (torch.__version__, suite.name, test, theirs.status, mine.status, why)
            yield dict(zip(COLUMNS, columns, strict=True))


def table(results: Sequence[dict[str, str]]) -> str:
    """A line for each suite and version of PyTorch."""
    lines = ["| PyTorch | suite | tests | gloo passes | serene passes | differences |", "|---|---|---|---|---|---|"]
    for version, suite in dict.fromkeys((row["pytorch"], row["suite"]) for row in results):
        of = [row for row in results if (row["pytorch"], row["suite"]) == (version, suite)]
        passed = [sum(row[backend] == "passed" for row in of) for backend in ("gloo", "serene")]
        names: dict[str, list[str]] = {}
        for row in of:
            if row["gloo"] == "passed" != row["serene"]:
                names.setdefault(row["why"], []).append(f"`{row['test'].rpartition('.')[2]}`")
        differences = "; ".join(f"{', '.join(tests)}: {why}" for why, tests in names.items())
        lines.append(f"| {version} | {suite} | {len(of)} | {passed[0]} | {passed[1]} | {differences} |")
    return "\n".join(lines) + "\n"


def parts(results: Sequence[dict[str, str]]) -> dict[str, str]:
    """What the page has of the results, by `page_tables` parts."""
    return {"suites": f"\n{table(results)}"}


def write(results: Sequence[dict[str, str]]) -> None:
    """The file of results, and the page's table."""
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(results)
    page_tables.write(PAGE, parts(results))


def read() -> list[dict[str, str]]:
    """Reads the file of results."""
    with RESULTS.open(newline="") as file:
        return list(csv.DictReader(file))


def main() -> int:
    parser = Parser("PyTorch's own tests on gloo, and those that pass there on serene.")
    parser.add_argument("--pytorch", type=Path, help="a checkout of PyTorch, of the version that is installed")
    parser.add_argument("--suite", action="append", help="only the suite of this name; repeatable")
    options = parser.parse_args()
    suites = list(SHIPPED)
    if options.pytorch:
        folder = options.pytorch.expanduser().resolve() / "test/distributed"
        there = [name for name in CHECKOUT if (folder / f"{name}.py").exists()]
        if not there:
            parser.error(f"--pytorch {options.pytorch}: none of {', '.join(CHECKOUT)} in {folder}")
        suites += [Suite(Path(name).name, folder / f"{name}.py", "not nccl") for name in there]
    with tempfile.TemporaryDirectory() as copies:
        suites += [suite for suite in [of_torchft(Path(copies))] if suite is not None]
        return int(sum(differences(suite) for suite in suites if not options.suite or suite.name in options.suite) > 0)


def differences(suite: Suite) -> int:
    """Plays a suite, prints and writes the results, and returns how many tests differ without a known reason."""
    new = list(rows(suite))
    print(table(new).splitlines()[-1], flush=True)
    replaced = (torch.__version__, suite.name)
    write([*(row for row in read() if (row["pytorch"], row["suite"]) != replaced), *new])
    reasons = {why for _, _, why in KNOWN}
    return sum(row["gloo"] == "passed" != row["serene"] and row["why"] not in reasons for row in new)


if __name__ == "__main__":
    raise SystemExit(ended(main))
