"""The sending side of ``experiments.bench``, in a host of the network: pushes, and counts what is answered."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

from serene.client import Client, UdpTransport
from serene.program import Program

SLOTS = 256


def main(repeats: int, seconds: float, results: Path) -> None:
    lanes = 0
    for name in ("serene", "serene_jumbo"):
        lanes = max(lanes, Program.load(name).lanes)
    length = SLOTS * lanes  # at least SLOTS slots in either variant
    measured = []
    with Client(UdpTransport(), 0, 0, length) as client:
        slots = client.join().slots
        gradient = np.ones(length, np.float32)
        client.exchange(gradient)
        for _ in range(repeats):
            began, pushes = time.perf_counter(), 0
            while time.perf_counter() - began < seconds:
                client.exchange(gradient)
                pushes += slots
            measured.append(pushes / (time.perf_counter() - began))
        client.leave()
    results.write_text(json.dumps(measured))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3]))
