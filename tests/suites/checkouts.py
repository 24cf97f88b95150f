"""The checkouts that a user names, the suites and programs in them, and their compilation."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from serene.errors import SereneError
from serene.process import outputs

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "build" / "p4-suites"
COMPILER = "p4c-bm2-ss"
COMPILE_S = 300.0
QUICK = ("-O0",)  # for the C of programs that see few packets

CHECKOUTS = {  # the setting of make: what it is, and a folder that it has to have
    "P4_GUIDE": ("jafingerhut/p4-guide", "ptf-tests"),
    "TUTORIALS": ("p4lang/tutorials", "exercises"),
    "UP4": ("omec-project/up4", "ptf"),
    "NGSDN": ("opennetworkinglab/ngsdn-tutorial", "ptf"),
    "P4_LEARNING": ("nsg-ethz/p4-learning", "exercises"),
    "P4C": ("p4lang/p4c", "testdata/p4_16_samples"),
    "BMV2": ("p4lang/behavioral-model", "targets/simple_switch_grpc/tests/testdata"),
    "DASH": ("sonic-net/DASH", "dash-pipeline/bmv2"),
    "PINS": ("sonic-net/sonic-pins", "sai_p4"),
    "FABRIC": ("stratum/fabric-tna", "p4src/v1model"),
    "ONOS": ("opennetworkinglab/onos", "pipelines/fabric"),
}
_FABRIC = "p4src/v1model/fabric_v1model.p4"
_ONOS = "pipelines/fabric/impl/src/main/resources/fabric.p4"
_ONOS_ALWAYS = ("-DTARGET_BMV2", "-DCPU_PORT=255", "-DWITH_PORT_COUNTER", "-DWITH_DEBUG")
# Programs that p4c takes only with the options of the checkout's own makefile, and their profiles.
BUILDS: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "DASH": [("dash-pipeline/bmv2/dash_pipeline.p4", ("-DTARGET_BMV2_V1MODEL",))],
    "FABRIC": [
        (_FABRIC, ("-I..", *(f"-DWITH_{part}" for part in parts))) for parts in ((), ("INT",), ("UPF",), ("UPF", "INT"))
    ],
    "ONOS": [
        (_ONOS, (*_ONOS_ALWAYS, *(f"-DWITH{part}" for part in parts)))
        for parts in (
            (),
            ("_SPGW",),
            ("_BNG", "OUT_XCONNECT"),
            ("_INT_SOURCE", "_INT_TRANSIT"),
            ("_SPGW", "_INT_SOURCE", "_INT_TRANSIT"),
        )
    ],
}


@cache
def compiler_version() -> str:
    return subprocess.run([COMPILER, "--version"], capture_output=True, text=True, check=False).stdout


def preprocessed(source: Path, *options: str) -> bytes:
    """A program's text with the files that it includes, or why it has none."""
    command = [COMPILER, "--arch", "v1model", *options, "-E", str(source)]
    run = subprocess.run(command, capture_output=True, cwd=source.parent, check=False)
    return run.stdout + run.stderr


class NotThere(SereneError):
    """A path that is no checkout, or a program that this machine cannot compile."""


class NotCompiled(SereneError):
    """p4c refuses the program for v1model."""


def check(name: str, path: Path) -> None:
    """Raises NotThere, which names what is expected."""
    repository, folder = CHECKOUTS[name]
    if not (path / folder).is_dir():
        raise NotThere(f"{name}={path} is no checkout of {repository}: it has no {folder}")


@dataclass(frozen=True)
class Program:
    """A program's P4 text, or its JSON as it lies in the checkout."""

    source: Path
    p4info: Path | None = None  # of a JSON
    options: tuple[str, ...] = ()  # of p4c

    def compiled(self) -> tuple[Path, Path | None]:
        """JSON and P4Info, compiled once per content. Raises NotCompiled, or NotThere without a compiler."""
        if self.source.suffix == ".json":
            return self.source, self.p4info
        if shutil.which(COMPILER) is None:
            raise NotThere(f"needs {COMPILER}")
        source = self.source.resolve()
        text = f"{compiler_version()}{source}{self.options or ''}".encode() + preprocessed(source, *self.options)
        key = hashlib.sha256(text).hexdigest()[:16]
        place = BUILT / f"{self.source.stem}-{key}"
        made, info, log = (place.with_name(place.name + end) for end in (".json", ".p4info.txtpb", ".log"))
        if not made.exists() and not log.exists():
            BUILT.mkdir(parents=True, exist_ok=True)
            half, half_info = (
                place.with_name(f"{place.name}.{os.getpid()}{end}") for end in (".json", ".p4info.txtpb")
            )
            command = [COMPILER, "--arch", "v1model", *self.options, "--p4runtime-files", str(half_info)]
            command += ["-o", str(half), str(source)]
            try:
                run = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_S, cwd=source.parent)
                output, failed = run.stderr, run.returncode != 0 or not half.exists()
            except subprocess.TimeoutExpired:
                output, failed = f"error: not compiled within {COMPILE_S:.0f} s", True
            if failed:
                half.unlink(missing_ok=True)
                half_info.unlink(missing_ok=True)
                outputs.write_text(log, output)
            else:
                half_info.replace(info)
                half.replace(made)
        if not made.exists():
            first = next((line for line in log.read_text().splitlines() if "error" in line), "p4c refuses it")
            raise NotCompiled(first.rpartition("error: ")[2])
        return made, info


@dataclass(frozen=True)
class Suite:
    """A folder of PTF tests with the program that they test."""

    name: str
    tests: Path
    program: Program
    path: tuple[Path, ...] = ()  # where its tests import from
    first_port: int = 0
    device_id: int = 0
    cpu_port: int | None = None
    pushes: bool = True  # whether the tests push the program
    parameters: dict[str, str] = field(default_factory=dict)


def suites(name: str, checkout: Path) -> Iterator[Suite]:
    """The PTF suites of a checkout."""
    if name in ("P4_GUIDE", "TUTORIALS"):
        for script in sorted(checkout.rglob("runptf.sh")):
            if "ipdk" not in script.parts:  # another target's
                yield _of_script(checkout, script)
    elif name in ("UP4", "NGSDN"):
        built = checkout / "p4src" / "build"
        program = Program(built / "bmv2.json", built / "p4info.txt")
        if not program.source.exists():
            program = Program(checkout / "p4src" / "main.p4")
        tests = checkout / "solution" / "ptf" / "tests"
        yield Suite(
            checkout.name,
            tests if tests.is_dir() else checkout / "ptf" / "tests",
            program,
            (checkout / "ptf" / "lib",),
            first_port=1,
            device_id=1,
            cpu_port=255,
            pushes=False,
        )


def _of_script(checkout: Path, script: Path) -> Suite:
    """The suite that a runptf.sh of p4-guide or the tutorials runs."""
    text, folder = script.read_text(), script.parent
    source = re.search(r"^\s+(\S+\.p4)\s*$", text, re.MULTILINE)
    tests = re.search(r"^[^#\n]*--test-dir (\S+)", text, re.MULTILINE)
    if source is None or tests is None:
        raise NotThere(f"{script}: expected the compilation of a program, and ptf with --test-dir")
    cpu_port = re.search(r"--cpu-port (\d+)", text)
    return Suite(
        str(folder.relative_to(checkout)),
        folder / tests[1],
        Program(folder / source[1]),
        (checkout / "testlib", checkout / "utils"),
        cpu_port=int(cpu_port[1]) if cpu_port else None,
    )


def programs(checkout: Path, name: str = "") -> Iterator[Program]:
    """Every v1model program of a checkout: what instantiates V1Switch, JSON for simple_switch, and what BUILDS has. Of
    P4-14 programs p4c's own translation, as not every p4c reads P4-14."""
    built = [Program(checkout / path, options=options) for path, options in BUILDS.get(name, ())]
    yield from built
    if name == "P4C":
        for path in sorted((checkout / "testdata" / "p4_14_samples").glob("*.p4")):
            translated = checkout / "testdata" / "p4_14_samples_outputs" / path.name
            if translated.exists():
                yield Program(translated)
    for path in sorted(checkout.rglob("*.p4")):
        if (
            path.is_file()
            and "V1Switch" in path.read_text(errors="replace")
            and "_outputs" not in str(path)
            and "_errors" not in str(path)
            and all(path != each.source for each in built)
        ):
            yield Program(path)
    for path in sorted(checkout.rglob("*.json")):
        if path.is_file() and _is_v1model(path):
            infos = [path.with_suffix(end) for end in (".p4info.txtpb", ".p4info.txt", ".proto.txt")]
            infos.append(path.with_name("p4info.txt"))
            yield Program(path, next((info for info in infos if info.exists()), None))


def _is_v1model(path: Path) -> bool:
    try:
        found = json.loads(path.read_bytes())
    except ValueError:
        return False
    if not isinstance(found, dict) or not {"pipelines", "parsers", "header_types"} <= set(found):
        return False
    return sorted(each["name"] for each in found["pipelines"]) == ["egress", "ingress"]
