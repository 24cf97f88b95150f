"""The compiled P4 program in this process, with entries written by their names."""

from __future__ import annotations

from collections.abc import Mapping

from serene import entries
from serene.embedded import Exact, Switch
from serene.entries import CPU_PORT, Endpoint, Entry, Group
from serene.program import Program
from serene.sim.hosts import running_job
from serene.strategy import PolicyFields


class ProgramSwitch:
    """A switch whose tables, counters and registers go by the last part of their names. ``compiler_flags`` as for
    `Switch.load`."""

    def __init__(self, program: Program, compiler_flags: tuple[str, ...] = ()) -> None:
        self.program = program
        self.switch = Switch.load(program.config, cpu_port=CPU_PORT, compiler_flags=compiler_flags)
        known = self.switch.program
        self.names = {name.rpartition(".")[2]: name for name in (*known.tables, *known.counters, *known.registers)}
        self._keys = {name: [key.name for key in known.tables[full].keys] for name, full in self._tables().items()}
        self._actions = {
            (name, action.name.rpartition(".")[2]): (action.name, [each.name for each in action.parameters])
            for name, full in self._tables().items()
            for action in known.tables[full].actions.values()
        }
        self._held: dict[tuple[str, tuple[int, ...]], tuple[int, Entry]] = {}
        for entry in entries.own_addresses():
            self.insert(entry)

    def close(self) -> None:
        self.switch.close()

    def _tables(self) -> dict[str, str]:
        return {name: full for name, full in self.names.items() if full in self.switch.program.tables}

    def _match(self, entry: Entry) -> list[Exact]:
        return [Exact(entry.match[name]) for name in self._keys[entry.table]]

    def _choice(self, entry: Entry) -> tuple[str, list[int]]:
        """An entry's action by its full name, and its parameters in their order."""
        action, names = self._actions[entry.table, entry.action]
        return action, [entry.params[name] for name in names]

    def insert(self, entry: Entry) -> None:
        handle = self.switch.table_add(self.names[entry.table], self._match(entry), *self._choice(entry))
        self._held[entry.key] = handle, entry

    def modify(self, entry: Entry) -> None:
        handle = self._held[entry.key][0]
        self.switch.table_modify(self.names[entry.table], handle, *self._choice(entry))
        self._held[entry.key] = handle, entry

    def has(self, entry: Entry) -> bool:
        """Whether there is an entry with this table and match."""
        return entry.key in self._held

    def held(self, table: str, *match: int) -> Entry | None:
        """The entry of a table with this match, in the order in which `Entry` was given it."""
        return self._held.get((table, match), (0, None))[1]

    def put(self, entry: Entry) -> None:
        """Inserts an entry, or replaces the one with the same match."""
        if self.has(entry):
            self.modify(entry)
        else:
            self.insert(entry)

    def delete(self, entry: Entry) -> None:
        """Deletes the entry with this table and match."""
        self.switch.table_delete(self.names[entry.table], self._held.pop(entry.key)[0])

    def entries(self) -> list[Entry]:
        """What was written and is there."""
        return [entry for _, entry in self._held.values()]

    def set_group(self, group: Group) -> None:
        self.switch.multicast_set(group.number, group.replicas)

    # -- a job -----------------------------------------------------------------------------------------------

    def admit(self, worker: int, host: Endpoint, job: int = 0) -> None:
        self.put(entries.address(job, worker, host))
        self.put(entries.member(job, worker, host))

    def start_job(self, hosts: Mapping[int, Endpoint], fields: PolicyFields, *, job: int = 0, **numbers: int) -> None:
        """Installs a job whose workers have joined. hosts: by worker. numbers: as of `running_job`."""
        self.set_group(entries.job_group(job, hosts))
        for entry in running_job(job, hosts, fields, **numbers):
            self.put(entry)

    def set_policy(self, session: int, epoch: int, fields: PolicyFields, job: int = 0) -> None:
        """Replaces the policy entry: a live swap."""
        self.put(entries.policy(job, session, epoch, fields))

    def count(self, counter: str, index: int = 0) -> int:
        """A packet counter's value."""
        return self.switch.counter_read(self.names[counter], index).packets

    def dropped(self) -> dict[str, int]:
        """Packets dropped, by reason; reasons that never occurred are left out."""
        names = [name for name in self.names if name.startswith("dropped_")]
        counts = {name.removeprefix("dropped_"): self.count(name) for name in names}
        return {reason: count for reason, count in counts.items() if count}
