"""A program of p4c's samples with the entries and packets of its script, for tests that send more packets to it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.embedded.stf import Add, Direct, Runner, Send, SetDefault, Target, parse
from tests.embedded.stf_samples import samples, why_not
from tests.suites.checkouts import NotCompiled, Program


@dataclass(frozen=True)
class SamplePackets:
    """A compiled sample, and what its script does. given: the (port, packet) pairs that the script sends."""

    json: Path
    p4info: Path
    given: list[tuple[int, bytes]]
    entries: list[Add | SetDefault | Direct]

    def prepare(self, target: Target) -> None:
        """Puts the script's entries into the switch."""
        Runner(target).run(self.entries)


def sample_packets(name: str) -> SamplePackets:
    """A sample by its name. Skips the test, naming what is missing, where the sample is not available."""
    p4c = os.environ.get("P4C_SOURCE")
    missing = why_not(p4c)
    if missing or p4c is None:
        pytest.skip(missing)
    sample = next((each for each in samples(p4c) if each.name == name), None)
    if sample is None:
        pytest.skip(f"this checkout of p4c has no {name}")
    try:
        json, p4info = Program(sample.source).compiled()
    except NotCompiled as error:
        pytest.skip(f"this p4c does not compile {name}: {error}")
    assert p4info is not None
    script = parse(sample.script.read_text())
    given = [(each.port, each.data) for each in script if isinstance(each, Send)]
    entries = [each for each in script if isinstance(each, Add | SetDefault | Direct)]
    return SamplePackets(json, p4info, given, entries)
