"""Attacks the embedded switch through everything that outsiders can reach. A finding ends the run.

    python -m tests.embedded.fuzz --sanitize --count 1000000        (make fuzz PACKETS=1000000)

frames      mutated packets to four programs
json        mutated programs, and packets to those that load
p4runtime   mutated messages to a running server
answers     what a hostile switch might answer a worker

With ``--sanitize`` the compiler's address and undefined-behaviour sanitizers watch the C code. The same seed and
count give the same packets, programs and messages.
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import argparse
import contextlib
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator

from serene.arguments import Parser, whole
from tests.embedded import fuzz_json
from tests.embedded.packets import shapes, trial
from tests.embedded.sanitizers import FLAGS, PROGRAMS, environment, loaded, sanitizer_libraries
from tests.embedded.serene_job import seeds, start_job
from tests.embedded.stf_embedded import EmbeddedTarget

BATCH = 500


def frames(options: argparse.Namespace) -> Iterator[tuple[str, Counter[str]]]:
    """Packets through the programs: valid ones, ones mutated in structure, and noise; counts what goes in and out."""
    for program in options.program or PROGRAMS:
        json, lanes = PROGRAMS[program]
        rng, counts, given = (
            random.Random(f"{program} {options.seed}"),
            Counter[str](),
            seeds(lanes) if lanes else shapes(),
        )
        with contextlib.closing(EmbeddedTarget(json.read_bytes(), FLAGS if options.sanitize else ())) as target:
            if lanes:
                start_job(target)
            for start in range(0, options.count, BATCH):
                packets = trial(rng, given, min(BATCH, options.count - start))
                for port, packet in packets:
                    if options.traced:
                        target.switch.process(port, packet, trace=True)
                    target.send(port, packet)
                counts["packets in"] += len(packets)
                counts["out"] += sum(len(sent) for sent in target.outputs().values())
                target.forget()
        yield program, counts


def programs(options: argparse.Namespace) -> Iterator[tuple[str, Counter[str]]]:
    yield "programs", fuzz_json.fuzz(max(options.count // 50, 1), options.seed, sanitize=options.sanitize)


def messages(options: argparse.Namespace) -> Iterator[tuple[str, Counter[str]]]:
    from tests.embedded import fuzz_p4runtime

    yield "messages", fuzz_p4runtime.fuzz(max(options.count // 10, 1), options.seed)


def answers(options: argparse.Namespace) -> Iterator[tuple[str, Counter[str]]]:
    from tests.client import fuzz_answers

    yield "answers", fuzz_answers.fuzz(options.count, options.seed, FLAGS if options.sanitize else ())


KINDS: dict[str, Callable[[argparse.Namespace], Iterator[tuple[str, Counter[str]]]]] = {
    "frames": frames,
    "json": programs,
    "p4runtime": messages,
    "answers": answers,
}


def main() -> int:
    parser = Parser(__doc__)
    parser.add_argument("--count", type=whole(1), default=10_000, help="packets for each program; others in proportion")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=KINDS, action="append", help="default: all")
    parser.add_argument("--program", choices=PROGRAMS, action="append", help="of frames; default: all")
    parser.add_argument("--sanitize", action="store_true", help="with address and undefined-behaviour sanitizers")
    parser.add_argument("--traced", action="store_true", help="frames: each also through the program that traces")
    options = parser.parse_args()
    if options.sanitize and not loaded():
        if not sanitizer_libraries():
            print("error: the C compiler has no sanitizer libraries (apt install libgcc-12-dev)", file=sys.stderr)
            return 2
        command = [sys.executable, "-m", "tests.embedded.fuzz", *sys.argv[1:]]
        return subprocess.run(command, env=environment(), check=False).returncode
    for kind in options.kind or KINDS:
        with tempfile.TemporaryDirectory(prefix="serene-fuzz-") as cache:
            if kind == "json":  # thousands of compiled libraries that nothing needs again
                os.environ["XDG_CACHE_HOME"] = cache
            for what, counts in KINDS[kind](options):
                print(f"{what}: {', '.join(f'{number} {name}' for name, number in counts.items())}", flush=True)
            if kind == "json":
                del os.environ["XDG_CACHE_HOME"]
    return 0


if __name__ == "__main__":
    raise SystemExit(ended(main))
