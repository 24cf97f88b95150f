"""Settings for all tests: signals, threads, the garbage collector, hypothesis, which tests never run at the same time,
and what their last lines report.

Ctrl-C ends the tests also if they were started in the background: a shell without job control starts background jobs
with SIGINT ignored, which every process of a test would inherit. SIGTERM ends them in the same way, and so does a
terminal that is closed, but not after nohup.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Generator, Set
from types import FrameType
from typing import Any

import pytest
from hypothesis import Phase, settings

from tests.support import warm

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: FrameType | None) -> None:
    """Ends the tests like Ctrl-C, so that pytest tears the fixtures down. Further signals do not disturb that."""
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt(signal.Signals(number).name)


def _stay(number: int, frame: FrameType | None) -> None:
    """Does nothing: after nohup the tests continue when the terminal is closed. Processes do not inherit a handler, as
    they would an ignored signal."""


OUTLIVE = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
if OUTLIVE:
    signal.signal(signal.SIGHUP, _stay)
for ending in (signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(ending) is signal.SIG_DFL:
        signal.signal(ending, _end)

# By default gRPC starts its threads again in a forked process, which fails, and ends it, once that has left its PID
# namespace. No forked process uses the channels of these tests.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# Tests start hundreds of Pythons. If none writes bytecode, each compiles all of our modules and tests again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

for library, threads in warm.ONE_THREAD.items():
    os.environ.setdefault(library, threads)

# What is imported and collected is never garbage. The collector does not search it, which would take a third of the
# time of the collection, and time again in tests that make many objects.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


# Without hypothesis's deadline for an example: on a busy machine examples take long.
settings.register_profile("no-deadline", deadline=None)
settings.register_profile("first-failure", deadline=None, phases=[Phase.explicit, Phase.generate])  # make mutants
settings.load_profile("no-deadline")

# The folders whose tests need Mininet. Each run has network, process and mount namespaces of its own, so that one of
# each lane may run at a time; more would only wait for processors.
MININET = ("tests/endtoend/", "tests/topologies/")
LANES = ("tests/endtoend/test_[a-l]", "tests/endtoend/test_[m-z]", "tests/topologies/")  # regular expressions
# Begun first, or they would still run, one at a time, when all others are done.
LONG_FIRST = (
    *MININET, "tests/controller/", "tests/torch/", "tests/workers/", "tests/tofino/", "tests/network_study/",
    "tests/unit/test_wheel.py", "tests/tree/test_properties.py", "tests/dataplane/", "tests/page/",
    "tests/straggler_study/", "tests/embedded/test_engine_sanitizers.py", "tests/client/test_pool_rules.py",
    "tests/client/test_sums.py", "tests/pytorch_study/test_fewer_bits.py",
)  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    if getattr(config.option, "numprocesses", None):  # pytest-xdist's processes will share the warm servers
        warm.begin_session()
    if hasattr(config, "workerinput") and config.workerinput["outlive"]:
        signal.signal(signal.SIGHUP, _stay)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["outlive"] = OUTLIVE


def group(nodeid: str) -> str:
    """The group of a test. Tests of one group run one after another, in one process: those of a lane, and those of one
    module and target, which share a switch."""
    for lane in LANES:
        if re.match(lane, nodeid):
            return lane
    module, _, test = nodeid.partition("::")
    target = re.search(r"\[(embedded|bmv2)\b", test)
    return f"{module} {target[1]}" if target else module


RAN = ("passed", "failed", "error", "xfailed", "xpassed")  # pytest's categories
EMBEDDED = re.compile(r"(?<=[\[-])embedded(?=[\]-])")  # a parameter in a test's name


def on_switches(ran: Set[str], with_bmv2: Set[str]) -> str:
    """How many tests ran on which switch; empty if none needs one. ran: the names of all that ran; with_bmv2: of those
    of them that need BMv2. A test of both switches has the switch as a parameter, and counts once."""
    embedded = {name for name in ran - with_bmv2 if EMBEDDED.search(name)}
    if not (embedded or with_bmv2):
        return ""
    both = with_bmv2 & {EMBEDDED.sub("bmv2", name) for name in embedded}
    return (
        f"{len(both)} tests ran on each of the two switches, {len(embedded) - len(both)} on the embedded one alone, "
        f"{len(with_bmv2 - both)} on BMv2 alone; {len(ran - embedded - with_bmv2)} others use the embedded switch or "
        "none"
    )


def lacked(reason: str) -> str:
    """What a skipped test lacks: 'needs root' for 'taking a link down needs root'. Other reasons stay as they are."""
    reason = reason.removeprefix("Skipped: ")
    needs = re.search(r"\bneeds .*", reason, re.DOTALL)
    return needs[0] if needs else reason


@pytest.hookimpl(wrapper=True, tryfirst=True)  # after all that pytest itself prints, but for its last line
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
    """Reports on which switches the tests ran, and what the skipped ones lacked. pytest-xdist's first process has the
    reports of all."""
    result = yield
    stats = terminalreporter.stats
    reports = [each for kind in RAN for each in stats.get(kind, ()) if each.when in ("call", "teardown")]
    with_bmv2 = {report.nodeid for report in reports if getattr(report, "with_bmv2", False)}
    lines = [on_switches({report.nodeid for report in reports}, with_bmv2)]
    skipped = Counter(
        ("test" if isinstance(each, pytest.TestReport) else "module", lacked(str(each.longrepr[2])))
        for each in stats.get("skipped", ())
    )
    for (kind, reason), count in sorted(skipped.items(), key=lambda each: (-each[1], each[0])):
        lines.append(f"{count} {kind}{'s' * (count > 1)} skipped: {reason}")
    if any(lines):
        terminalreporter.section("switches, and what was skipped")
    for line in filter(None, lines):
        terminalreporter.line(line)
    return result


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object | None:
    # Not --dist loadgroup: pytest-xdist 3.8 cannot rename the tests of pytest 9.2, and groups nothing.
    if config.getoption("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):  # type: ignore[misc] # it has no types
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

    return ByGroup(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds to the report what a process had printed that did not end in time, and whether the test needs BMv2: its
    keywords would also name folders."""
    report = yield
    report.with_bmv2 = item.get_closest_marker("bmv2") is not None  # type: ignore[attr-defined]
    error = call.excinfo.value if call.excinfo else None
    while error is not None:
        if isinstance(error, subprocess.TimeoutExpired):
            for name, output in (("output", error.stdout), ("errors", error.stderr)):
                text = output.decode(errors="replace") if isinstance(output, bytes) else output
                if text:
                    report.sections.append((f"{name} of a process that did not end", text))
        error = error.__cause__ or error.__context__
    return report


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Names bytes after their argument instead of their content: all of pytest-xdist's processes must collect tests of
    the same names, and compressed data contain the time at which they were made."""
    return argname if isinstance(val, bytes) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("mininet") and not item.nodeid.startswith(MININET):
            raise pytest.UsageError(f"{item.nodeid} needs Mininet; such tests are in {' or '.join(MININET)}")
    if hasattr(config, "workerinput"):  # one of several processes
        items.sort(key=lambda item: [not item.nodeid.startswith(path) for path in LONG_FIRST])
