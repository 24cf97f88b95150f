"""Loads every program of a checkout on both switches, as a controller pushes it or, without a P4Info, as a file."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import grpc
from finsy.proto import p4i
from google.protobuf import text_format

from serene.embedded import Switch
from serene.embedded.p4runtime.entities import Entities
from serene.embedded.p4runtime.pipeline import Schema
from serene.errors import SereneError
from serene.topologies.processes import bmv2
from tests.p4rt import Controller
from tests.suites.checkouts import QUICK, NotCompiled, Program
from tests.suites.switches import GRPC, PATIENCE_S, THRIFT


@dataclass(frozen=True)
class Loaded:
    """Whether a program was loaded; else why not."""

    why_not: str = ""


def load(program: Program, switch: str) -> Loaded | None:
    """None if p4c does not compile the program."""
    try:
        json, p4info = program.compiled()
    except NotCompiled:
        return None
    try:
        why_not = (_in_bmv2 if switch == "bmv2" else _in_ours)(json, p4info)
        return Loaded(why_not.replace(f"{json}: ", ""))
    except (AssertionError, OSError) as error:
        return Loaded(f"{type(error).__name__}: {error}")


def _in_ours(json: Path, p4info: Path | None) -> str:
    try:
        with Switch.load(json, compiler_flags=QUICK) as loaded:
            if p4info is not None:
                info = text_format.Parse(p4info.read_text(), p4i.P4Info())
                Entities(Schema(info, loaded.program), loaded, lambda message: True)
    except (SereneError, text_format.ParseError) as error:
        return str(error)
    return ""


def _in_bmv2(json: Path, p4info: Path | None) -> str:
    address = f"127.0.0.1:{GRPC}"
    command = [word for word in bmv2(THRIFT) if p4info is not None or word != "--no-p4"]
    command += [] if p4info is not None else [str(json)]
    command += ["--", "--grpc-server-addr", address]
    with tempfile.TemporaryFile("w+") as log:  # noqa: SIM117
        with subprocess.Popen(command, stdout=log, stderr=log) as process:
            try:
                with grpc.insecure_channel(address) as channel:
                    ready = grpc.channel_ready_future(channel)
                    while process.poll() is None:
                        try:
                            ready.result(PATIENCE_S if p4info else 0.2)
                            break
                        except grpc.FutureTimeoutError:
                            continue
                if process.poll() is None and p4info is not None:
                    return _pushed(address, json, p4info)
                return "" if process.poll() is None else _last_line(log)
            finally:
                process.kill()


def _pushed(address: str, json: Path, p4info: Path) -> str:
    try:
        controller = Controller(address, json, p4info)
    except text_format.ParseError as error:
        return str(error)
    try:
        controller.push()
    except grpc.RpcError as error:
        return str(error.details()) or str(error.code()) if isinstance(error, grpc.Call) else str(error)
    finally:
        controller.close()
    return ""


def _last_line(log: object) -> str:
    log.seek(0)  # type: ignore[attr-defined]
    lines = [line.strip() for line in log.read().splitlines() if line.strip()]  # type: ignore[attr-defined]
    return lines[-1] if lines else "it ended"
