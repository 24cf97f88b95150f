"""Helper processes of these tests that do not become ready."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controller.processes import ROOT, Process

FIRST_CHANNEL_IN_ANOTHER_NETWORK = """
import os
from concurrent import futures
import grpc
from serene.topologies.isolation import in_child, run_isolated
from tests.controller.processes import own_network

def connected(address):
    channel = grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
    grpc.channel_ready_future(channel).result(60)
    return channel

def server(address):
    made = grpc.server(futures.ThreadPoolExecutor(1))
    port = made.add_insecure_port(address)
    made.start()
    return made, port

with own_network(0):
    there, _ = server("unix:there")
    connected("unix:there")
here, port = server("127.0.0.1:0")
connected(f"127.0.0.1:{port}")
_, status = os.waitpid(in_child(lambda: run_isolated(lambda: 0)), 0)
print("connected", status)
"""


@pytest.mark.parametrize("ends", [AssertionError, KeyboardInterrupt])
def test_process_that_never_becomes_ready_is_ended(tmp_path: Path, ends: type[BaseException]) -> None:
    def never() -> bool:
        raise ends

    process = Process(["sleep", "1000"], tmp_path / "log")
    with pytest.raises(ends):
        process.await_(never, "it is ready")
    assert process.process.returncode is not None


def test_error_for_an_ended_process_quotes_its_log(tmp_path: Path) -> None:
    """It quotes the log; the command contains the same words, but not next to each other."""
    process = Process(["sh", "-c", "printf 'no %s' room; exit 3"], tmp_path / "log")
    with pytest.raises(AssertionError, match="no room"):
        process.await_(lambda: False, "it is ready")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a network namespace")
def test_grpc_connects_after_its_first_channel_was_in_another_network(tmp_path: Path) -> None:
    """Runs in a process of its own, because gRPC's threads live as long as their process. They do not prevent isolated
    runs either."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CHANNEL_IN_ANOTHER_NETWORK], cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "connected 0\n", done.stderr
