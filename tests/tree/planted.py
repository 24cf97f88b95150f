"""Faults planted in the tree's rules, one by one, to see whether random runs find them."""

from __future__ import annotations

from serene.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import argparse
from contextlib import nullcontext
from dataclasses import dataclass

from tests.planted import Line, planted
from tests.tree.model import Leaf, LeafSlot, Root
from tests.tree.simulation import Broken, Simulation, play


@dataclass(frozen=True)
class Fault:
    """A fault to be found within 100 random runs from ``first`` on. For rare faults, ``first`` is shortly before a run
    that finds them."""

    rule: str
    line: Line
    first: int = 0


RUNS = 100


def fault(rule: str, owner: object, function: str, right: str, wrong: str, first: int = 0) -> Fault:
    return Fault(rule, Line(owner, function, right, wrong), first)


FAULTS = (
    # -- the leaf's rules
    fault("a GRANT is an answer", Leaf, "grant",
          "(slot.heard and packet.base <= slot.granted):\n        return []\n",
          "(slot.heard and packet.base <= slot.granted):\n        return []\n"
          "    elif slot.heard:\n"
          "        before, slot.granted = slot.granted, packet.base\n"
          "        held = self._held(slot, False)\n"
          "        return [self._answer(slot, worker, Op.ANSWER, 0, before + 1, *held) for worker in slot.waiting]\n"),
    fault("a base of an older epoch counts at a leaf", Leaf, "down",
          "before = slot.granted\n", "before = slot.granted\n    slot.granted = max(slot.granted, packet.base)\n"),
    fault("a release names the newest base", Leaf, "down", "0, before + 1, *held", "0, packet.base, *held"),
    fault("the first word of an epoch releases", Leaf, "down",
          "first = not slot.heard and bound > 0", "first = False"),
    fault("the root is asked only when the rack is complete", Leaf, "request",
          "repeat = not go and not fresh", "repeat = not go and not fresh and slot.base > slot.granted"),
    fault("a packet of a newer epoch is of an older one", Leaf, "request",
          "policy is not None and epoch > slot.epoch:", "policy is not None and epoch > slot.epoch == 0:"),
    fault("what was heard in an older epoch is of this one", LeafSlot, "adopt", "self.heard = False", "pass"),
    fault("an epoch begins with the rounds of the one before", LeafSlot, "adopt",
          "self.epoch, self.base, self.granted, self.arrived = epoch, 0, 0, 0", "self.epoch = epoch"),
    fault("who waits is not nudged", LeafSlot, "adopt",
          "nudged, self.waiting = self.waiting, set()", "nudged = set()"),
    fault("what an echo brings in a snapshot epoch is kept", Leaf, "down",
          "keep = latest or not packet.echo", "keep = True"),
    fault("an answer through the root is ahead of the root", Root, "_down",
          "self.policy.read_mode is ReadMode.LATEST", "self.policy.read_mode is ReadMode.LATEST or echo"),
    fault("an older epoch's words answer", Leaf, "down",
          "        if current:\n            values", "        if True:\n            values", 3700),
    fault("words of the root count in any order", Leaf, "down",
          "forward = (packet.base, packet.total) >= (slot.granted, slot.down_total)", "forward = True"),
    fault("packets of an older epoch are answered by the leaf", Leaf, "request",
          "go = slot.heard and current and latest", "go = slot.heard and latest"),
    fault("whatever is prepared is in force", Leaf, "request",
          "policy = self.prepared.get((session, epoch))",
          "policy = self.prepared.get((session, epoch))\n"
          "    newest = max(e for s, e in self.prepared if s == session)\n"
          "    if newest > slot.epoch:\n        slot.adopt(newest)"),
    fault("a worker's word is enough for an epoch", Leaf, "request",
          "values is not None and epoch > self._newest()", "False"),
    fault("a leaf goes on with the sums of an older session", Leaf, "_slot",
          "self.slots[place] = LeafSlot(self.lanes, self.session)", "self.slots[place].session = self.session"),
    fault("an older session's requests count", Leaf, "request", "if session != self.session:", "if False:"),
    fault("an older session's DOWN counts", Leaf, "down",
          "if packet.session != self.session:", "if (packet.session, packet.epoch) not in self.prepared:"),
    fault("repeats count", Leaf, "request", "fresh = seq > slot.seen.get(worker, 0)", "fresh = True"),
    fault("a rack is complete one worker early", Leaf, "_arrive",
          "complete = arrivals == policy.enough", "complete = arrivals == max(policy.enough - 1, 1)"),
    fault("arrivals of any round are of this one", Leaf, "_arrive",
          "slot.arrived += round_ == slot.granted", "slot.arrived += 1"),
    fault("arrivals go on counting in the next round", Leaf, "down",
          "            slot.arrived = 0\n", "            pass\n"),
    fault("a rack's arrivals stay those of the last round", Leaf, "down",
          "packet.base if policy.by_arrivals else slot.base", "slot.base"),
    # -- the root's rules
    fault("a base of an older epoch counts at the root", Root, "up",
          "current = packet.epoch == self.epoch", "current = True"),
    fault("a rack's sums add up", Root, "up",
          "slot.sum + (packet.values - rack.values)", "slot.sum + packet.values"),
    fault("an old UP replaces a newer one", Root, "up", "if packet.total > rack.total:", "if True:"),
    fault("an old UP gets values", Root, "up", "loaded = current\n", "loaded = True\n", 600),
    fault("the fastest rack decides", Root, "_base",
          "return min((", "return max(("),
    fault("an epoch's base goes on from the one before", Root, "up",
          "slot.epoch, slot.base = self.epoch, 0", "slot.epoch = self.epoch"),
    fault("racks that have not spoken are served", Root, "up",
          "loaded = heard if snapshot else child == leaf", "loaded = snapshot or child == leaf", 150),
    fault("a rack's first word changes no snapshot", Root, "up", " or base == 0 or first", " or base == 0", 150),
    fault("no snapshot when a round completes", Root, "up", "if clear or moved or base == 0", "if clear or base == 0"),
    fault("arrivals of other rounds count", Root, "_base", "and rack.base == slot.base]", "]"),
    fault("arrivals of other epochs count", Root, "_base", "if rack.epoch == self.epoch and", "if"),
    fault("one arrival fewer will do", Root, "_base", ">= self.policy.quorum", ">= max(self.policy.quorum - 1, 1)"),
    fault("the root goes on with an older session", Root, "up",
          "self.slots[place] = RootSlot(self.lanes, self.leaves, self.session)",
          "self.slots[place].session = self.session"),
    fault("an older session's UP counts", Root, "up", "if packet.session != self.session:", "if False:"),
    # -- what users do
    fault("one PULL is enough", Simulation, "run", "range(FINAL_PULLS)", "range(1)"),
)  # fmt: skip


@dataclass(frozen=True)
class Found:
    """How a fault was found: by which run (counted from 1), and with what message."""

    runs: int
    what: str


def hunt(first: int, runs: int, line: Line | None = None) -> Found | None:
    """Plays up to ``runs`` random runs; the first that breaks a rule, None if none does."""
    with planted(line) if line is not None else nullcontext():
        for number in range(runs):
            try:
                play(first + number)
            except Broken as broken:
                return Found(number + 1, str(broken))
    return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.tree.planted", description="Hunts for faults in the tree.")
    parser.add_argument("--runs", type=int, default=2000, help="of the right rules (default 2000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first of these (default 0)")
    parser.add_argument("--only", default="", help="only planted faults whose rule has this in it")
    options = parser.parse_args()
    missed = 0
    for planned in FAULTS:
        if options.only in planned.rule:
            found = hunt(planned.first, 50 * RUNS, planned.line)
            missed += found is None or found.runs > RUNS
            print(f"{planned.rule}: {f'run {found.runs}: {found.what[:100]}' if found else 'NOT FOUND'}", flush=True)
    found = hunt(options.first, options.runs)
    print(f"the right rules, {options.runs} runs: {found.what if found else 'nothing'}")
    return int(missed > 0 or found is not None)


if __name__ == "__main__":
    raise SystemExit(ended(main))
