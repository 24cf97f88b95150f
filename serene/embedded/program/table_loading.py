"""Loads the pipelines of BMv2's JSON: tables with their keys, actions and entries, conditionals, and their order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from serene.embedded.program.errors import NotBmv2Json, UnsupportedProgram, known, unique, where
from serene.embedded.program.ir import (
    MATCH_KINDS,
    TABLE_TYPES,
    Action,
    Conditional,
    Entry,
    Key,
    Pipeline,
    Program,
    Table,
)
from serene.errors import choices

Raw = Mapping[str, Any]
LARGEST_LPM_LIMBS = 8  # as in runtime/table.h
ENTRY_NEEDS = {
    "exact": ("key",),
    "valid": ("key",),
    "lpm": ("key", "prefix_length"),
    "ternary": ("key", "mask"),
    "optional": ("key",),
    "range": ("start", "end"),
}


def load_pipeline(program: Program, actions: Mapping[int, Action], raw: Raw, first: int) -> Pipeline:
    """Loads a pipeline; ``first`` is the number of its first table among the tables of both."""
    tables = []
    for at, item in enumerate(raw["tables"]):
        with where(f"table {item['name']!r}"):
            tables.append(_table(program, actions, item, first + at))
    conditionals = tuple(
        Conditional(item["name"], item["expression"], item["true_next"], item["false_next"])
        for item in raw["conditionals"]
    )
    pipeline = Pipeline(raw["name"], raw["init_table"], tuple(tables), conditionals)
    _check_order(pipeline)
    return pipeline


def _table(program: Program, actions: Mapping[int, Action], raw: Raw, id_: int) -> Table:
    if raw["type"] not in TABLE_TYPES:
        raise UnsupportedProgram(f"type {raw['type']!r} is not supported (supported: {choices(TABLE_TYPES)})")
    keys = tuple(_key(program, item) for item in raw["key"])
    offered: dict[str, Action] = {}
    for action in table_actions(raw, actions):
        if offered.setdefault(action.name, action) is not action:
            raise NotBmv2Json(f"two actions are called {action.name!r}")
    default = raw.get("default_entry")
    default_action = None
    if default:
        action = _action(actions, default["action_id"])
        if offered.setdefault(action.name, action) is not action:
            raise NotBmv2Json(f"two actions are called {action.name!r}")
        default_action = action, _params(action, default.get("action_data") or ())
    profile = profile_name(raw)
    if raw["type"] != "simple":
        known(program.action_profiles, profile, "action profile")
    table = Table(
        name=raw["name"],
        id=id_,
        keys=keys,
        actions=offered,
        size=raw["max_size"],
        with_counters=bool(raw.get("with_counters")),
        idle_timeouts=bool(raw.get("support_timeout")),
        direct_meter=raw.get("direct_meters"),
        default_action=default_action,
        const_default=bool(default and default.get("action_const")),
        next_tables=raw["next_tables"],
        base_default_next=raw.get("base_default_next"),
        entries=tuple(_entry(keys, offered, at, item) for at, item in enumerate(raw.get("entries") or ())),
        profile=profile,
    )
    if sum(key.match_type == "lpm" for key in keys) > 1 and table.kind == "lpm":
        raise UnsupportedProgram("two lpm keys are not supported")
    if table.kind == "lpm" and table.key_limbs > LARGEST_LPM_LIMBS:
        raise UnsupportedProgram(f"an lpm key of more than {64 * LARGEST_LPM_LIMBS} bits is not supported")
    return table


def profile_name(raw: Raw) -> str | None:
    """The name of the table's action profile, even if the profile is inside the table, as in the oldest JSON."""
    return raw.get("action_profile", raw.get("act_prof_name")) if raw["type"] != "simple" else None


def table_actions(raw: Raw, actions: Mapping[int, Action]) -> list[Action]:
    """A table's actions, by their ids, or by their names if it has no ids."""
    if "action_ids" in raw:
        return [_action(actions, id_) for id_ in raw["action_ids"]]
    named: dict[str, Action] = {}
    for action in actions.values():
        named.setdefault(action.name, action)
    return [known(named, name, "action") for name in raw.get("actions") or ()]


def _key(program: Program, raw: Raw) -> Key:
    kind = raw["match_type"]
    if kind not in MATCH_KINDS:
        raise UnsupportedProgram(f"match kind {kind!r} is not supported (supported: {choices(MATCH_KINDS)})")
    target = raw["target"] if isinstance(raw["target"], tuple) else (raw["target"], "$valid$")
    label = raw.get("name") or ".".join(target)
    with where(f"key {label!r}"):
        field = program.field(*target)
        mask = int(raw["mask"], 16) if raw.get("mask") else None
        if field.most_bytes:
            raise UnsupportedProgram("a varbit field is not supported")
        if mask is not None and not 0 <= mask < 1 << field.width:
            raise NotBmv2Json(f"the mask {mask:#x} does not fit {field.width} bits")
        if mask is not None and field.width > 64:
            raise UnsupportedProgram(f"a masked key of {field.width} bits is not supported")
        if kind == "range" and field.width > 64:
            raise UnsupportedProgram("a range of more than 64 bits is not supported")
    return Key(label, kind, field.width, target, mask)


def _action(actions: Mapping[int, Action], id_: int) -> Action:
    if id_ not in actions:
        raise NotBmv2Json(f"there is no action with id {id_}")
    return actions[id_]


def _params(action: Action, data: Any) -> tuple[int, ...]:
    values = tuple(int(value, 16) for value in data)
    if len(values) != len(action.parameters):
        raise NotBmv2Json(f"action {action.name!r} takes {len(action.parameters)} parameters, not {len(values)}")
    for parameter, value in zip(action.parameters, values, strict=True):
        if not 0 <= value < 1 << parameter.width:
            raise NotBmv2Json(f"action {action.name!r}: {value:#x} does not fit {parameter.name!r}")
    return values


def _entry(keys: tuple[Key, ...], actions: Mapping[str, Action], at: int, raw: Raw) -> Entry:
    with where(f"entry {at}"):
        id_ = raw["action_entry"]["action_id"]
        action = next((action for action in actions.values() if action.id == id_), None)
        if action is None:
            raise NotBmv2Json(f"the table has no action with id {id_}")
        if len(raw["match_key"]) != len(keys):
            raise NotBmv2Json(f"{len(raw['match_key'])} match keys for a table with {len(keys)}")
        for key, item in zip(keys, raw["match_key"], strict=True):
            kind = item["match_type"]
            if kind not in ENTRY_NEEDS:
                raise NotBmv2Json(f"{key.name!r} is matched as {kind!r}")
            for need in ENTRY_NEEDS[kind]:
                if item.get(need) is None or isinstance(item[need], bool) > (kind == "valid"):
                    raise NotBmv2Json(f"{key.name!r} is matched as {kind!r}, without a {need!r}")
        params = _params(action, raw["action_entry"]["action_data"])
        return Entry(tuple(raw["match_key"]), action, params, raw.get("priority", at))


def _check_order(pipeline: Pipeline) -> None:
    """Checks that every step leads to existing steps and never back to itself. Otherwise a packet would never leave."""
    follows: dict[str, list[str]] = {}
    for table in pipeline.tables:
        follows[table.name] = [name for name in (*table.next_tables.values(), table.base_default_next) if name]
    unique([table.name for table in pipeline.tables] + [c.name for c in pipeline.conditionals], "table or condition")
    for conditional in pipeline.conditionals:
        follows[conditional.name] = [name for name in (conditional.true_next, conditional.false_next) if name]
    for step, following in follows.items():
        if step in following:
            raise NotBmv2Json(f"{step!r} leads back to itself")
    for names in (*follows.values(), [pipeline.init] if pipeline.init else []):
        for name in names:
            known(follows, name, "table or condition")
    done: set[str] = set()
    for start in follows:
        path: list[str] = []  # the steps that lead to the one being visited
        todo = [start]
        while todo:
            name = todo[-1]
            if path and path[-1] == name:
                path.pop()
                todo.pop()
                done.add(name)
            elif name in done:
                todo.pop()
            elif name in path:
                raise NotBmv2Json(f"{name!r} leads back to itself")
            else:
                path.append(name)
                todo += [following for following in follows[name] if following not in done]
