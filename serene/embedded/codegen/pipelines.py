"""Generates ingress and egress as labels and gotos: tables, conditionals, and their successors, in p4c's order."""

from __future__ import annotations

from serene.embedded.codegen.calculations import CalculationWriter
from serene.embedded.codegen.expressions import Expr
from serene.embedded.codegen.names import identifier, identifiers
from serene.embedded.codegen.scope import Scope
from serene.embedded.codegen.trace import event, place_words
from serene.embedded.program.errors import known, where
from serene.embedded.program.ir import Action, Pipeline, Table, limbs_of


class PipelineWriter:
    """Generates ``void ingress(struct packet *packet)``, or egress."""

    def __init__(self, scope: Scope, pipeline: Pipeline) -> None:
        self._scope = scope
        self._pipeline = pipeline
        self._labels = {table.name: identifier("table", table.id, table.name) for table in pipeline.tables}
        self._labels |= identifiers("condition", (conditional.name for conditional in pipeline.conditionals))

    def source(self) -> str:
        scope, pipeline = self._scope, self._pipeline
        lines = [
            f"STAGE_FUNCTION void {pipeline.name}(struct packet *packet) {{",
            "    struct phv *const h = &packet->h;",
            "    struct state *const state = packet->state;",
            "    (void)h; (void)state;",
            f"    {self._go(pipeline.init)}",
        ]
        for table in pipeline.tables:
            with where(f"table {table.name!r}"):
                lines += [f"{self._labels[table.name]}: {{", *self._apply(table), "}"]
        for number, conditional in enumerate(pipeline.conditionals, self._first_condition()):
            emitter = scope.emitter()
            with where(f"condition {conditional.name!r}"):
                test = scope.reader(emitter).truth(conditional.expression)
            lines += [f"{self._labels[conditional.name]}: {{", *(f"    {line}" for line in emitter.lines)]
            lines.append(f"    {event('CONDITION', number, f'({test}) != 0')}")
            lines += [f"    if ({test}) {self._go(conditional.true_next)}", f"    {self._go(conditional.false_next)}"]
            lines += ["}"]
        return "\n".join([*lines, "}"])

    def _first_condition(self) -> int:
        """The number of this pipeline's first conditional; egress continues ingress's numbering."""
        before = () if self._pipeline.name == "ingress" else self._scope.program.pipelines["ingress"].conditionals
        return len(before)

    def _go(self, name: str | None) -> str:
        return f"goto {self._labels[name]};" if name else "return;"

    def _call(self, action: Action, data: str) -> str:
        stage = f"STAGE(&state->runtime, STAGE_ACTIONS + {action.id}); "
        words = f"trace_words(&state->runtime, TRACE_ACTION, {action.id}, {data}, {action.limbs});"
        call = f"TRACED({words}) {self._scope.action(action.id)}(packet, {data}); {event('END', 0)}"
        return f"{stage}{call} STAGE(&state->runtime, STAGE_MATCH);"

    def _apply(self, table: Table) -> list[str]:
        fixed = table.default_action if not table.keys and table.const_default else None
        at = f"state->tables[{table.id}]"
        lines = []
        if fixed and not table.with_counters and not fixed[0].parameters:
            lines.append(f"    {self._call(fixed[0], 'NULL')}")
            lines.append("    if (packet->requests.exit) return;")
            return [*lines, f"    {self._go(self._next(table, fixed[0].name))}"]
        if table.keys:
            lines += self._key(table)
            look_up = f"table_lookup(&{at}, TABLE_{table.kind.upper()}, key, {table.key_limbs})"
            lines.append(f"    struct entry *entry = {look_up};")
        else:
            lines.append("    struct entry *entry = NULL;")
        lines += ["    const int hit = entry != NULL;", "    (void)hit;", f"    if (!hit) entry = &{at}.standard;"]
        key = "key" if table.keys else "NULL"
        lines.append(f"    TRACED(trace_table(&state->runtime, &{at}, {table.id}, hit ? entry : NULL, {key});)")
        if table.idle_timeouts:
            lines.append("    entry->touched = 1;")
        if table.with_counters:
            lines += ["    entry->packets++;", "    entry->bytes += packet->length;"]
        if table.direct_meter:
            lines += self._direct_meter(table)
        lines += [
            f"    const uint64_t *data = table_data(&{at}, entry);",
            "    uint32_t action = entry->action;",
            "    (void)data;",
        ]
        if table.profile is not None:
            lines += self._choose(table)
        lines.append("    switch (action) {")
        for action in table.actions.values():
            lines.append(f"    case {action.id}: {self._call(action, 'data')} break;")
        lines += ["    default: break;", "    }", "    if (packet->requests.exit) return;"]
        if "__HIT__" in table.next_tables:
            steps = (table.next_tables.get(name, table.base_default_next) for name in ("__HIT__", "__MISS__"))
            hit, miss = map(self._go, steps)
            return [*lines, f"    if (hit) {hit}", f"    {miss}"]
        if len({self._next(table, name) for name in table.actions} | {table.base_default_next}) == 1:
            return [*lines, f"    {self._go(table.base_default_next)}"]
        lines.append("    switch (action) {")
        for action in table.actions.values():
            lines.append(f"    case {action.id}: {self._go(self._next(table, action.name))}")
        return [*lines, f"    default: {self._go(table.base_default_next)}", "    }"]

    @staticmethod
    def _next(table: Table, action: str) -> str | None:
        if "__MISS__" in table.next_tables:
            return table.next_tables["__MISS__"]
        return table.next_tables.get(action, table.base_default_next)

    def _key(self, table: Table) -> list[str]:
        emitter = self._scope.emitter()
        emitter.array("key", table.key_limbs)
        at = 0
        for key in table.keys:
            place = self._scope.place(*key.target)
            if key.width <= 64:
                keep = f" & {key.mask:#x}ull" if key.mask is not None else ""
                emitter.line(f"key[{at}] = {place.code}{keep};")
            else:
                emitter.line(f"wide_copy(key + {at}, {place.limbs}, {place.code}, {place.limbs});")
            at += limbs_of(key.width)
        return [f"    {line}" for line in emitter.lines]

    def _choose(self, table: Table) -> list[str]:
        """C that finds the action of a table with a profile: an entry names a member, or a group to select from."""
        scope = self._scope
        profile = known(scope.program.action_profiles, table.profile, "action profile")
        emitter = scope.emitter()
        call = "0"
        if profile.selector is not None:
            call, _ = CalculationWriter(scope).input(
                profile.name, profile.selector["algo"], profile.selector["input"], scope.reader(emitter), emitter
            )
        return [
            "    if (action == PROFILE_ENTRY) {",
            "        uint64_t hash = 0;",
            "        if (data[0]) {",
            *(f"            {line}" for line in emitter.lines),
            f"            hash = {call};",
            "        }",
            f"        {event('MEMBER', profile.id, 'data[0]', 'data[1]', 'hash')}",
            f"        struct member *member = profile_choose(&state->action_profiles[{profile.id}], data, hash);",
            "        action = member ? member->action : NO_ACTION;",
            "        data = member ? member->data : data;",
            "    }",
        ]

    def _direct_meter(self, table: Table) -> list[str]:
        meter = self._scope.program.meters[table.direct_meter or ""]
        index = f"entry - state->tables[{table.id}].entries"
        call = (
            f"meter_execute(&state->meters[{meter.id}].items[{index}], {int(meter.kind == 'bytes')}, packet->length, "
            "(now_ns() - state->runtime.started_ns) / 1000)"
        )
        emitter = self._scope.emitter()
        target = self._scope.target(*(meter.target or ()))
        emitter.store(target, Expr("c", 0, 2, (call,), ones=3))
        emitter.line(event("METER", meter.id, index, *place_words(target)))
        return ["    if (hit) {", *(f"        {line}" for line in emitter.lines), "    }"]
