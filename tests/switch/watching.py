"""Watchers of a running switch: of its traces, and serenectl."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
from typing import Any

import grpc

from serene.switch.p4runtime.watching import NoTraces, watch
from serene.switch.trace import Step, step_from_json
from tests.switch.p4rt_controller import until

PATIENCE_S = 120.0


class Watch:
    """A client of the switch's traces, in a thread; packets are traced from its making on."""

    def __init__(self, port: int, **wanted: Any) -> None:
        self.packets: queue.Queue[Step] = queue.Queue()
        self.ended = threading.Event()
        self.error = ""
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        ready = threading.Event()
        threading.Thread(target=self._run, args=(wanted, ready), daemon=True).start()
        until(lambda: ready.is_set() or self.ended.is_set(), "packets are traced", 60)

    def _run(self, wanted: dict[str, Any], ready: threading.Event) -> None:
        try:
            for answer in watch(self._channel, wanted, ready.set):
                assert "lost" not in answer
                self.packets.put(step_from_json(answer))
        except NoTraces as error:
            self.error = str(error)
        finally:
            self.ended.set()

    def next(self) -> Step:
        return self.packets.get(timeout=PATIENCE_S)

    def close(self) -> None:
        self._channel.close()
        assert self.ended.wait(PATIENCE_S)


def serenectl(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "serene.controller", "trace", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
