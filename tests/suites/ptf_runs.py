"""Runs a PTF suite with PyPI's ptf, in the environment that ``make p4-suites`` makes."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

from finsy.proto import p4i
from google.protobuf import text_format

from tests.p4rt import Controller
from tests.suites.checkouts import ROOT, Suite
from tests.suites.switches import PAIRS, running

PYTHON = ROOT / ".venv-suites" / "bin" / "python"
RUN_S = 900.0
_BEGINS = re.compile(r"^([\w.]+\.\w+) \.\.\. ")
_TRACEBACK = re.compile(r"^(?:FAIL|ERROR): ([\w.]+)[^\n]*\n-{70}\n(.*?)\n(?=={70}|-{70}|\Z)", re.MULTILINE | re.DOTALL)
_RAISED = re.compile(r"[\w.]+(?::|$)")  # an exception's name at the left
_ENDS = re.compile(r"(?:^|\s)(ok|FAIL|ERROR|skipped.*)$")


def run_suite(suite: Suite, switch: str) -> dict[str, str]:
    """The outcome of each test: pass, fail, or skipped; none where ptf runs none. Raises NotThere or NotCompiled."""
    json, p4info = suite.program.compiled()
    assert p4info is not None, suite
    with tempfile.TemporaryDirectory() as scratch, running(switch, suite) as address:
        if not suite.pushes:
            controller = Controller(address, json, p4info, device_id=suite.device_id)
            controller.push()
            controller.close()
        output = _ptf(suite, address, json, p4info, Path(scratch))
    return outcomes_of(output)


def outcomes_of(output: str) -> dict[str, str]:
    """ptf's result of each test, on the line that names it or, behind what the test prints, on a later one; of a test
    that fails also the last line of its traceback, which ptf prints at the end."""
    outcomes, name = {}, ""
    for line in output.splitlines():
        begins, ends = _BEGINS.match(line), _ENDS.search(line)
        name = begins[1] if begins else name
        if name and ends:
            outcomes[name] = "pass" if ends[1] == "ok" else "skipped" if ends[1].startswith("skip") else "fail"
            name = ""
    for failure in _TRACEBACK.finditer(output):
        if outcomes.get(failure[1]) == "fail":
            last = [line for line in failure[2].splitlines() if _RAISED.match(line)]
            outcomes[failure[1]] = f"fails: {last[-1][:120]}" if last else "fail"
    return outcomes


def _ptf(suite: Suite, address: str, json: Path, p4info: Path, scratch: Path) -> str:
    binary = scratch / "p4info.bin"
    binary.write_bytes(text_format.Parse(p4info.read_text(), p4i.P4Info()).SerializeToString())
    given = {"grpcaddr": address, "p4info": p4info if suite.pushes else binary, "config": json}
    given |= {"device_id": suite.device_id, "cpu_port": suite.cpu_port or 0}
    command = [str(PYTHON), str(PYTHON.with_name("ptf")), "--test-dir", str(suite.tests)]
    command += ["--pypath", ":".join(str(path) for path in suite.path)]
    for number in range(PAIRS):
        command += ["-i", f"{suite.first_port + number}@veth{2 * number + 1}"]
    command.append("--test-params=" + ";".join(f"{name}='{value}'" for name, value in given.items()))
    (scratch / "logs").mkdir()
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    environment["PYTHONPATH"] = ":".join(str(path) for path in (*suite.path, Path(__file__).with_name("inside")))
    try:
        run = subprocess.run(
            command, cwd=scratch, env=environment, text=True, timeout=RUN_S, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        return (error.stdout or b"").decode(errors="replace")
    return run.stdout
