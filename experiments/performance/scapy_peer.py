"""What one iteration costs a worker that builds and takes apart each packet with scapy: our own path's peer.

No socket is in it, only numbers to packets and packets to numbers.
"""

from __future__ import annotations

import time

import numpy as np
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from serene.fixedpoint import DEFAULT_LIMIT, DEFAULT_SCALE, FixedPoint
from serene.layers import Serene, Values
from serene.wire import SERENE_UDP_PORT, SWITCH_IP, SWITCH_MAC, Op

HERE = ("02:00:00:00:00:01", "10.0.0.1", 40000)


def iteration_s(values: int, lanes: int, repeats: int) -> tuple[float, ...]:
    """CPU seconds of each repeat: a gradient of so many values out, and as many sums in."""
    fixed = FixedPoint(DEFAULT_SCALE, DEFAULT_LIMIT)
    gradient = np.random.default_rng(1).normal(0, 0.1, values).astype(np.float32)
    seconds = []
    for seq in range(1, repeats + 1):
        began = time.process_time()
        quantised, _ = fixed.quantise(gradient)
        packets = [
            bytes(
                Ether(src=HERE[0], dst=SWITCH_MAC)
                / IP(src=HERE[1], dst=SWITCH_IP)
                / UDP(sport=HERE[2], dport=SERENE_UDP_PORT)
                / Serene(op=Op.PUSH, session=1, epoch=1, round=seq - 1, seq=seq, slot=slot)
                / Values(values=quantised[start : start + lanes].tolist())
            )
            for slot, start in enumerate(range(0, values, lanes))
        ]
        sums = [value for packet in packets for value in Ether(packet)[Values].values]
        fixed.dequantise(np.array(sums[:values], np.int32))
        seconds.append(time.process_time() - began)
    return tuple(seconds)
