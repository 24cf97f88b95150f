"""A small router as a v1model program and its P4Info, made here: routes by longest prefix, and an access list.

h: destination, source (32 bits each), protocol (8), from_port, to_port (16 each)
routes  destination: lpm                               -> send(port)
acl     every field: ternary, after the routes         -> send(port)
"""

from __future__ import annotations

import json
from typing import Any

from finsy.proto import p4i

Node = dict[str, Any]
FIELDS = {"destination": 32, "source": 32, "protocol": 8, "from_port": 16, "to_port": 16}
HEADER_BYTES = sum(FIELDS.values()) // 8
ROUTES, ACL, SEND = 0x0200_0001, 0x0200_0002, 0x0100_0001  # ids in the P4Info
STANDARD = {
    "ingress_port": 9, "egress_spec": 9, "egress_port": 9, "instance_type": 32, "packet_length": 32,
    "enq_timestamp": 32, "enq_qdepth": 19, "deq_timedelta": 32, "deq_qdepth": 19, "ingress_global_timestamp": 48,
    "egress_global_timestamp": 48, "mcast_grp": 16, "egress_rid": 16, "checksum_error": 1, "parser_error": 32,
    "priority": 3, "_padding": 3,
}  # fmt: skip


def _table(id_: int, name: str, kind: str, keys: list[str], size: int, following: str | None) -> Node:
    key = [{"match_type": kind, "name": key, "target": ["h", key], "mask": None} for key in keys]
    return {
        "name": name, "id": id_, "key": key, "match_type": kind, "type": "simple", "max_size": size,
        "with_counters": False, "support_timeout": False, "direct_meters": None, "action_ids": [0, 1],
        "actions": ["send", "nothing"], "base_default_next": following,
        "next_tables": {"send": following, "nothing": following},
        "default_entry": {"action_id": 1, "action_const": True, "action_data": [], "action_entry_const": True},
    }  # fmt: skip


def program(routes: int, acl: int) -> bytes:
    """BMv2's JSON, with tables of these sizes."""
    send = {
        "op": "assign",
        "parameters": [
            {"type": "field", "value": ["standard_metadata", "egress_spec"]},
            {"type": "runtime_data", "value": 0},
        ],
    }
    start = {
        "name": "start", "id": 0, "transition_key": [],
        "parser_ops": [{"op": "extract", "parameters": [{"type": "regular", "value": "h"}]}],
        "transitions": [{"type": "default", "value": None, "mask": None, "next_state": None}],
    }  # fmt: skip
    tables = [
        _table(0, "routes", "lpm", ["destination"], routes, "acl"),
        _table(1, "acl", "ternary", list(FIELDS), acl, None),
    ]
    empty: Node = {"tables": [], "action_profiles": [], "conditionals": []}
    made: Node = {
        "program": "router.p4", "__meta__": {"version": [2, 23], "compiler": "serene"},
        "header_types": [
            {"name": "standard_metadata", "id": 0, "fields": [[n, w, False] for n, w in STANDARD.items()]},
            {"name": "h_t", "id": 1, "fields": [[n, w, False] for n, w in FIELDS.items()]},
        ],
        "headers": [
            {"name": "standard_metadata", "id": 0, "header_type": "standard_metadata", "metadata": True,
             "pi_omit": True},
            {"name": "h", "id": 1, "header_type": "h_t", "metadata": False, "pi_omit": True},
        ],
        "parsers": [{"name": "parser", "id": 0, "init_state": "start", "parse_states": [start]}],
        "deparsers": [{"name": "deparser", "id": 0, "order": ["h"], "primitives": []}],
        "actions": [
            {"name": "send", "id": 0, "runtime_data": [{"name": "port", "bitwidth": 9}], "primitives": [send]},
            {"name": "nothing", "id": 1, "runtime_data": [], "primitives": []},
        ],
        "pipelines": [
            {**empty, "name": "ingress", "id": 0, "init_table": "routes", "tables": tables},
            {**empty, "name": "egress", "id": 1, "init_table": None},
        ],
        "errors": [["NoError", 0], ["PacketTooShort", 1], ["NoMatch", 2], ["StackOutOfBounds", 3],
                   ["HeaderTooShort", 4], ["ParserTimeout", 5], ["ParserInvalidArgument", 6]],
        **{name: [] for name in (
            "header_stacks", "header_union_types", "header_unions", "header_union_stacks", "field_lists", "enums",
            "parse_vsets", "meter_arrays", "counter_arrays", "register_arrays", "calculations", "learn_lists",
            "checksums", "force_arith", "extern_instances",
        )},
        "field_aliases": [],
    }  # fmt: skip
    return json.dumps(made).encode()


def p4info(routes: int, acl: int) -> p4i.P4Info:
    info = p4i.P4Info(pkg_info=p4i.PkgInfo(arch="v1model"))
    for id_, name, size in ((ROUTES, "routes", routes), (ACL, "acl", acl)):
        table = info.tables.add(preamble=p4i.Preamble(id=id_, name=name, alias=name), size=size)
        kind = p4i.MatchField.LPM if id_ == ROUTES else p4i.MatchField.TERNARY
        for number, (field, bits) in enumerate(FIELDS.items(), 1):
            if id_ == ACL or field == "destination":
                table.match_fields.add(id=number, name=field, bitwidth=bits, match_type=kind)
        table.action_refs.add(id=SEND)
        table.action_refs.add(id=SEND + 1, scope=p4i.ActionRef.DEFAULT_ONLY)
        table.const_default_action_id = SEND + 1
    for id_, name in ((SEND, "send"), (SEND + 1, "nothing")):
        action = info.actions.add(preamble=p4i.Preamble(id=id_, name=name, alias=name))
        if id_ == SEND:
            action.params.add(id=1, name="port", bitwidth=9)
    return info
