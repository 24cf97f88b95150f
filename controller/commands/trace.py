"""``serenectl trace``: the steps of packets in a running serene-switch. It connects to the switch; a controller only
names it."""

from __future__ import annotations

import json
import os
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from serene.controller.commands.common import Url
from serene.controller.http.client import ControllerClient, NoController
from serene.controller.settings import DEFAULT_SWITCH, Settings, host_and_port, port_numbers, settings
from serene.errors import BadUsage, SereneError, choices


class Format(str, Enum):
    """How packets are printed."""

    TEXT, JSON, PROTO = "text", "json", "proto"


def trace(
    switch: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help=f"The switch's P4Runtime server; default: the controller's, else {DEFAULT_SWITCH}.",
        ),
    ] = None,
    switch_ca: Annotated[str, typer.Option(metavar="FILE", help=Settings.model_fields["switch_ca"].description)] = "",
    switch_cert: Annotated[str, typer.Option(metavar="FILE", help="TLS: this command's certificate.")] = "",
    switch_key: Annotated[str, typer.Option(metavar="FILE", help="TLS: the key of --switch-cert.")] = "",
    port: Annotated[
        str | None,
        typer.Option(metavar="1-4", help="Only packets that arrive at these ports (0 to 511); default: all."),
    ] = None,
    match: Annotated[
        str,
        typer.Option(metavar="EXPRESSION", help="Only packets that match, as 'udp.dst == 24142 and ipv4.ttl < 64'."),
    ] = "",
    dropped: Annotated[
        bool, typer.Option("--dropped", help="Only packets that were dropped, or of which a copy was dropped.")
    ] = False,
    count: Annotated[int, typer.Option(metavar="N", min=0, help="Stop after N packets; 0: never.")] = 0,
    bytes: Annotated[
        int, typer.Option(metavar="N", min=0, max=1 << 16, help="Show the first N bytes of each packet.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    form: Annotated[
        Format, typer.Option("--format", help="json: an object per packet; proto: BMv2's PacketTrace, a line per copy.")
    ] = Format.TEXT,
    controller: Url = None,
) -> None:
    """Trace packets through the switch: parser states, tables, actions, registers, drops."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # gRPC would log errors that it also returns
    import grpc  # imported here: it would double the start-up time of every command

    from serene.embedded.control.loaded import MAX_PORTS
    from serene.embedded.p4runtime.watching import NoTraces, watch
    from serene.embedded.trace.proto import lines
    from serene.embedded.trace.steps import step_from_json
    from serene.embedded.trace.text import text

    if as_json and form is Format.PROTO:
        raise BadUsage("--json with --format proto: expected one of them")
    # Checks that the files exist and fit together.
    tls = settings(switch_ca=switch_ca, switch_cert=switch_cert, switch_key=switch_key)
    switch = switch or _switch_of(controller)
    try:
        host_and_port(switch)
        ports = None if port is None else port_numbers(port, 0, MAX_PORTS - 1)
    except ValueError as error:
        raise BadUsage(f"--switch {switch}, --port {port}: {error}") from None
    wanted = {"ports": ports, "match": match, "dropped": dropped, "count": count, "bytes": bytes}

    def ready() -> None:
        print(f"tracing packets of {switch}", file=sys.stderr, flush=True)

    limits = [("grpc.max_receive_message_length", -1)]
    if tls.switch_ca:
        authority, certificate, key = (
            Path(name).read_bytes() if name else None for name in (tls.switch_ca, tls.switch_cert, tls.switch_key)
        )
        credentials = grpc.ssl_channel_credentials(authority, key, certificate)
        opened = grpc.secure_channel(switch, credentials, limits)
    else:
        opened = grpc.insecure_channel(switch, limits)
    with opened as channel:
        traced = 0
        try:
            for answer in watch(channel, wanted, ready):
                if "lost" in answer:
                    print(
                        f"{answer['lost']} packets were not traced: they arrived too fast", file=sys.stderr, flush=True
                    )
                    continue
                if as_json or form is Format.JSON:
                    shown = json.dumps(answer)
                elif form is Format.PROTO:
                    shown = "\n".join(lines(step_from_json(answer), traced))
                else:
                    shown = text(step_from_json(answer))
                print(shown, flush=True)
                traced += 1
        except NoTraces as error:
            raise SereneError(f"{switch}: {error}") from None


def _switch_of(controller: str | None) -> str:
    """The address of the controller's switch; the default one where no controller was named and none runs. Raises
    BadUsage if it has several."""
    try:
        with ControllerClient(controller) as client:
            switches = client.status().switches
    except NoController:
        if controller is not None:
            raise
        return DEFAULT_SWITCH
    if len(switches) > 1:
        raise BadUsage(f"--switch is missing: expected {choices(f'{each.address} ({each.name})' for each in switches)}")
    return switches[0].address
