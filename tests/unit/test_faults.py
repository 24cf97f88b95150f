"""Fault files are parsed and checked, and faults are applied to packets."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from serene.faults import (
    KINDS,
    Action,
    BadFaults,
    Direction,
    Event,
    Faults,
    Links,
    PacketFaults,
    kind_of,
    load,
    parse,
    uplink,
)
from serene.wire import Op, control_payload
from tests.frames import frame, request

UP, DOWN = Direction.TO_SWITCH, Direction.TO_WORKER


def push(seq: int = 1) -> bytes:
    return frame(request(Op.PUSH, 0, values=np.zeros(320), seq=seq), 0)


def test_fault_file_with_every_setting_is_parsed() -> None:
    text = """
    seed = 7
    [[packets]]
    workers = [0, 2]
    direction = "to_switch"
    kinds = ["PUSH", "PULL"]
    loss = 0.1
    duplication = 1
    reordering = 0.2
    late_s = 0.5
    delay_s = 0.01
    jitter_s = 0.002
    start_s = 1
    end_s = 2.5
    [[packets]]
    loss = 0.5
    [[events]]
    iteration = 20
    action = "restart worker"
    worker = 1
    seconds = 0.5
    [[events]]
    iteration = 30
    action = "restart switch"
    """
    assert parse(text) == Faults(
        7,
        (
            PacketFaults((0, 2), UP, ("PUSH", "PULL"), 0.1, 1.0, 0.2, 0.5, 0.01, 0.002, 1.0, 2.5),
            PacketFaults(loss=0.5),
        ),
        (Event(20, Action.RESTART_WORKER, 1, 0.5), Event(30, Action.RESTART_SWITCH)),
    )
    assert parse("") == Faults()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed = " + 5000 * "9", "not TOML: Exceeds the limit"),
        ("seed = " + 5000 * "[" + 5000 * "]", "not TOML: maximum recursion depth exceeded"),
        ("seed = 0x" + 5000 * "f", "seed = ...: expected a whole number, 0 or more, below 2^63"),
        ("[[packets]]\nloss = 1" + 400 * "0", "expected a number"),
        ("[[packets]]\ndirection = 0x" + 5000 * "f", 'direction = ...: expected "to_switch"'),
    ],
    ids=lambda text: text[:30],
)
def test_fault_file_with_oversized_numbers_is_refused(text: str, message: str, tmp_path: Path) -> None:
    """refusals.txt has the other bad fault files."""
    path = tmp_path / "faults.toml"
    path.write_text(text)
    with pytest.raises(BadFaults) as raised:
        load(path)
    assert str(raised.value).startswith(f"{path}: ") and message in str(raised.value)


def test_fault_error_names_file_and_entry_of_unknown_worker(tmp_path: Path) -> None:
    path = tmp_path / "faults.toml"
    path.write_text("[[packets]]\nloss = 0.1\n[[packets]]\nworkers = [1, 9]\nloss = 0.1\n")
    with pytest.raises(BadFaults) as refused:
        load(path).check(4)
    assert str(refused.value) == f"{path}: [[packets]] number 2: worker 9 is not in the run; it has workers 0 to 3"


@pytest.mark.parametrize(
    ("faults", "racks"),
    [
        (Faults(events=(Event(1, Action.RESTART_LEAF, rack=2), Event(1, Action.RESTART_ROOT))), 3),
        (Faults(packets=(PacketFaults(kinds=("GRANT", "PUSH")),)), 2),
        (Faults(packets=(PacketFaults(workers=(1, 7)),), events=(Event(1, Action.PAUSE_WORKER, 4),)), 1),
    ],
)
def test_faults_check_accepts_workers_and_switches_in_the_run(faults: Faults, racks: int) -> None:
    """refusals.txt has the combinations that are refused."""
    faults.check(8, racks)


def test_leaf_restart_event_names_its_rack() -> None:
    (event,) = parse('[[events]]\niteration = 3\naction = "restart leaf"\nrack = 0').events
    assert (event.rack, str(event)) == (0, "restart leaf of rack 0 at iteration 3, for 1 s")


def test_kind_of_classifies_each_packet_operation() -> None:
    for op in (Op.HELLO, Op.PUSH, Op.PULL, Op.REPORT, Op.LEAVE):
        assert kind_of(frame(request(op, 0), 0)) == op.name
    for op in (Op.WELCOME, Op.ANSWER, Op.NUDGE, Op.REFUSED, Op.BYE):
        assert kind_of(frame(control_payload(op, seq=1), 0)) == op.name
    assert kind_of(frame(control_payload(Op.ANSWER, seq=0), 0)) == "RELEASE"
    assert kind_of(bytes(60)) == kind_of(b"") == kind_of(frame(b"", 0)) == "OTHER"
    arp = bytes.fromhex("ffffffffffff0200000000010806") + bytes(28)
    assert kind_of(arp) == "OTHER"
    assert {"RELEASE", "OTHER"} < set(KINDS)


def fates(faults: PacketFaults, count: int = 4000, seed: int = 1) -> list[list[tuple[float, bytes]]]:
    links = Links(Faults(seed, (faults,)))
    return [links.fate(push(), 0, UP, 0.0) for _ in range(count)]


def test_packet_faults_hit_the_configured_share_of_packets() -> None:
    found = fates(PacketFaults(loss=0.1, duplication=0.2, reordering=0.3, late_s=0.5))
    copies = Counter(map(len, found))
    assert copies[0] / 4000 == pytest.approx(0.1, abs=0.02)
    assert copies[2] / (4000 - copies[0]) == pytest.approx(0.2, abs=0.02)
    firsts = [outcome[0][0] for outcome in found if outcome]
    late = [delay for delay in firsts if delay > 0]
    assert len(late) / len(firsts) == pytest.approx(0.3, abs=0.03)
    assert sum(late) / len(late) == pytest.approx(0.5, rel=0.1)
    assert {packet for outcome in found for _, packet in outcome} == {push()}


def test_packet_faults_add_delay_and_jitter() -> None:
    assert fates(PacketFaults(delay_s=0.25), 3) == [[(0.25, push())]] * 3
    delays = [outcome[0][0] for outcome in fates(PacketFaults(delay_s=0.25, jitter_s=0.1))]
    assert min(delays) >= 0.25
    assert sum(delays) / len(delays) == pytest.approx(0.35, rel=0.05)


def test_packet_faults_are_determined_by_the_seed() -> None:
    faults = PacketFaults(loss=0.1, duplication=0.2, reordering=0.3, jitter_s=0.1)
    assert fates(faults, 200) == fates(faults, 200)
    assert fates(faults, 200) != fates(faults, 200, seed=2)


def test_link_faults_are_independent_of_other_links() -> None:
    faults = Faults(3, (PacketFaults(loss=0.2, jitter_s=0.01),))
    alone, together, rng = Links(faults), Links(faults), random.Random(0)
    for _ in range(100):
        for _ in range(rng.randrange(3)):
            together.fate(push(), rng.randrange(1, 4), rng.choice([UP, DOWN]), 0.0)
        assert alone.fate(push(), 0, UP, 0.0) == together.fate(push(), 0, UP, 0.0)


EVERY = [(link, direction, kind) for link in (0, 1, uplink(0), uplink(1))
         for direction, kind in ((UP, "PUSH"), (DOWN, "NUDGE"), (UP, "OTHER"))]  # fmt: skip


@pytest.mark.parametrize(
    ("faults", "hit"),
    [
        (PacketFaults(loss=1), lambda link, direction, kind: True),
        (PacketFaults(loss=1, workers=(1,)), lambda link, direction, kind: link == 1),
        (PacketFaults(loss=1, racks=(1,)), lambda link, direction, kind: link == uplink(1)),
        (PacketFaults(loss=1, workers=(0,), racks=(0,)), lambda link, direction, kind: link in (0, uplink(0))),
        (PacketFaults(loss=1, direction=DOWN), lambda link, direction, kind: direction is DOWN),
        (PacketFaults(loss=1, kinds=("NUDGE", "OTHER")), lambda link, direction, kind: kind != "PUSH"),
    ],
)
def test_packet_faults_match_only_their_links_directions_and_kinds(
    faults: PacketFaults, hit: Callable[[int, Direction, str], bool]
) -> None:
    packets = {"PUSH": push(), "NUDGE": frame(control_payload(Op.NUDGE), 0), "OTHER": bytes(60)}
    links = Links(Faults(packets=(faults,)))
    for case in EVERY:
        link, direction, kind = case
        expected = hit(*case) and (kind != "OTHER" or kind in faults.kinds)  # which has to be named
        assert (not links.fate(packets[kind], link, direction, 0.0)) == expected, case


def test_first_matching_packet_fault_applies_within_its_time() -> None:
    links = Links(
        Faults(
            packets=(PacketFaults(kinds=("PULL",)), PacketFaults(start_s=1, end_s=2, loss=1), PacketFaults(delay_s=9))
        )
    )
    pull = frame(request(Op.PULL, 0), 0)
    for now in (0.0, 1.5):
        assert links.fate(pull, 0, UP, now) == [(0.0, pull)]
    assert [len(links.fate(push(), 0, UP, now)) for now in (0.9, 1.0, 1.9, 2.0)] == [1, 0, 0, 1]
    assert links.fate(push(), 0, UP, 5.0) == [(9.0, push())]


def test_fault_files_in_the_documentation_parse() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/faults.md").read_text()
    faults = parse(page.split("```toml\n")[1].split("```")[0])
    assert faults.packets[0].workers == (0,)
    assert [event.action for event in faults.events] == [
        Action.RESTART_CONTROLLER,
        Action.RESTART_WORKER,
        Action.PAUSE_WORKER,
        Action.RESTART_SWITCH,
    ]
    over_racks = parse(page.split("```toml\n")[2].split("```")[0])
    over_racks.check(4, racks=2)
    assert over_racks.packets[0].racks == (0, 1)
    for kind in KINDS:
        assert kind in page
