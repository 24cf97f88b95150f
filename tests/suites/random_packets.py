"""The same random packets to BMv2 and to the embedded switch, each with the same program and no entries but its own."""

from __future__ import annotations

import contextlib
import json
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc

from serene.errors import SereneError
from tests.embedded.bmv2 import HANGS_S, Bmv2, running_bmv2
from tests.embedded.packets import trial
from tests.embedded.stf_embedded import EmbeddedTarget
from tests.suites.apart import Apart, Crashed
from tests.suites.checkouts import QUICK, NotCompiled, Program

PACKETS, SEEDS, PORTS = 60, 30, 8
MOST_STATES = 24  # of a path through a parser
Node = dict[str, Any]
Place = tuple[int, int]  # bits before it, and its own


class _Path:
    """A packet that takes a random path through a parser of BMv2's JSON, as far as the values that it selects by are
    the packet's own."""

    def __init__(self, program: Node, rng: random.Random) -> None:
        self._rng, self._bits, self._at = rng, dict[int, int](), 0
        self._types = {each["name"]: each for each in program["header_types"]}
        self._headers = {each["name"]: each["header_type"] for each in program["headers"]}
        self._stacks = {each["name"]: each["header_type"] for each in program.get("header_stacks", [])}
        self._places: dict[tuple[str, str], Place] = {}

    def walk(self, parser: Node) -> bytes:
        states = {state["name"]: state for state in parser["parse_states"]}
        following = parser["init_state"]
        for _ in range(MOST_STATES):
            if following is None:
                break
            state = states[following]
            for each in state["parser_ops"]:
                self._take(each["op"], each["parameters"])
            chosen = self._rng.choice(state["transitions"] or [{"type": "default", "next_state": None}])
            if chosen["type"] == "hexstr":
                self._meet(state["transition_key"], int(chosen["value"], 16), chosen["mask"])
            following = chosen["next_state"]
        length = (self._at + 7) // 8 * 8 + 8 * self._rng.randrange(60)
        whole = 0
        for place in range(length):
            whole = whole << 1 | self._bits.get(place, self._rng.getrandbits(1))
        return whole.to_bytes(length // 8, "big")

    def _take(self, operation: str, parameters: Sequence[Node]) -> None:
        if operation in ("extract", "extract_VL"):
            kind, name = parameters[0]["type"], parameters[0]["value"]
            of = (self._headers if kind == "regular" else self._stacks if kind == "stack" else {}).get(str(name), "")
            for field, width, *_ in self._types[of]["fields"] if of else []:
                bits = width if isinstance(width, int) else 8 * self._rng.randrange(4)
                self._places[name, field] = self._at, bits
                self._at += bits
        elif operation == "advance" and parameters[0]["type"] == "hexstr":
            self._at += int(parameters[0]["value"], 16)
        elif operation == "set" and (place := self._place(parameters[1])) is not None:
            self._places[tuple(parameters[0]["value"])] = place

    def _place(self, value: Node) -> Place | None:
        if value["type"] == "lookahead":
            return self._at + value["value"][0], value["value"][1]
        if value["type"] in ("field", "stack_field"):
            return self._places.get(tuple(value["value"])) or self._of_stack(value["value"])
        return None

    def _of_stack(self, value: Sequence[str]) -> Place | None:
        return next((p for (name, field), p in self._places.items() if name == value[0] and field == value[1]), None)

    def _meet(self, keys: Sequence[Node], value: int, mask: str | None) -> None:
        """Chooses the packet's bits so that the keys have this value."""
        if mask is not None:
            keep = int(mask, 16)
            value = value & keep | self._rng.getrandbits(keep.bit_length() + 1) & ~keep
        for key in reversed(keys):
            at, width = self._place(key) or (None, 8)
            if at is None:  # of an unknown width, too
                return
            for place in range(at + width - 1, at - 1, -1):
                self._bits[place] = value & 1
                value >>= 1
            value >>= -width % 8  # each key fills whole bytes


def packets(program: Node, seed: str, count: int = PACKETS) -> list[tuple[int, bytes]]:
    """Pairs of a port and a packet: those that take a path of the program's parser, and mutations of them."""
    rng = random.Random(seed)
    seeds = [(rng.randrange(PORTS), _Path(program, rng).walk(program["parsers"][0])) for _ in range(SEEDS)]
    return trial(rng, [(port, packet) for port, packet in seeds if packet] or [(1, bytes(60))], count)


def by_port(outputs: Sequence[tuple[int, bytes]]) -> dict[int, list[bytes]]:
    """BMv2's egress threads work side by side, by port: only a port's own packets have an order."""
    ports: dict[int, list[bytes]] = defaultdict(list)
    for port, packet in outputs:
        ports[port].append(packet)
    return dict(ports)


def difference(ours: EmbeddedTarget, peer: Bmv2, given: Sequence[tuple[int, bytes]]) -> tuple[str, int]:
    """The first packet that the switches treat differently, or nothing; and how many packets BMv2 sent."""
    came_out = 0
    # One at a time: BMv2 drops what its queues cannot hold, and resubmitted packets go behind those that wait.
    for number, (port, packet) in enumerate(given):
        ours.send(port, packet)
        expected, found = by_port(peer.process([(port, packet)])), ours.outputs()
        if found != expected:
            return f"packet {number}, port {port}, {packet.hex()}: {_shown(found)}, not {_shown(expected)}", came_out
        came_out += sum(len(sent) for sent in expected.values())
        ours.forget()
    return "", came_out


def _shown(outputs: dict[int, list[bytes]]) -> str:
    return " ".join(f"{port}:{packet.hex()}" for port, sent in sorted(outputs.items()) for packet in sent) or "nothing"


def compare(program: Path, p4info: Path, seed: str) -> dict[str, str] | None:
    """What each switch did: "pass" or why not. BMv2 passes unless it ends or hangs. None where one of them refuses the
    program, which "loading" names."""
    given = packets(json.loads(program.read_bytes()), seed)
    try:
        with contextlib.ExitStack() as stack:
            ours = stack.enter_context(contextlib.closing(EmbeddedTarget(program.read_bytes(), QUICK)))
            peer = stack.enter_context(running_bmv2(program, p4info, HANGS_S))
            try:
                why_not, came_out = difference(ours, peer, given)
            except grpc.RpcError as error:
                if isinstance(error, grpc.Call) and error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
                    return {"bmv2": "hangs", "serene-switch": "pass"}
                message = error.details() if isinstance(error, grpc.Call) else str(error)
                return {"bmv2": f"ends: {message}", "serene-switch": "pass"}
    except (SereneError, grpc.RpcError):
        return None
    except (grpc.FutureTimeoutError, AssertionError) as error:
        return {"bmv2": f"not reached: {type(error).__name__} {error}", "serene-switch": "pass"}
    return {"bmv2": "pass", "serene-switch": why_not or "pass", "came out": str(came_out)}


def compared(program: Program, apart: Apart) -> dict[str, str] | None:
    """As ``compare``; None also where p4c refuses the program or it has no P4Info."""
    try:
        built, p4info = program.compiled()
        return apart(compare, built, p4info, program.source.stem) if p4info is not None else None
    except NotCompiled:
        return None
    except Crashed as error:
        return {"bmv2": "pass", "serene-switch": str(error)}
