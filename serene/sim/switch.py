"""The compiled P4 program in this process, with entries written as numbers."""

from __future__ import annotations

from collections.abc import Mapping

from serene.program import Program
from serene.sim import entries
from serene.sim.entries import Entry, Host
from serene.strategy import PolicyFields
from serene.switch import Exact, Switch


class ProgramSwitch:
    """A switch whose tables, counters and registers go by the last part of their names. ``compiler_flags`` as for
    `Switch.load`."""

    def __init__(self, program: Program, compiler_flags: tuple[str, ...] = ()) -> None:
        self.program = program
        self.switch = Switch.load(program.config_path, cpu_port=entries.CPU_PORT, compiler_flags=compiler_flags)
        known = self.switch.program
        self.names = {name.rpartition(".")[2]: name for name in (*known.tables, *known.counters, *known.registers)}
        self._handles: dict[tuple[str, tuple[int, ...]], int] = {}
        for entry in entries.own_addresses():
            self.insert(entry)

    def close(self) -> None:
        self.switch.close()

    def _action(self, table: str, action: str) -> str:
        return next(name for name in self.switch.program.tables[table].actions if name.rpartition(".")[2] == action)

    def insert(self, entry: Entry) -> None:
        name = self.names[entry.table]
        keys, action = [Exact(value) for value in entry.match], self._action(name, entry.action)
        self._handles[entry.table, tuple(entry.match)] = self.switch.table_add(name, keys, action, entry.params)

    def modify(self, entry: Entry) -> None:
        name, handle = self.names[entry.table], self._handles[entry.table, tuple(entry.match)]
        self.switch.table_modify(name, handle, self._action(name, entry.action), entry.params)

    def put(self, entry: Entry) -> None:
        """Inserts an entry, or replaces the one with the same match."""
        if (entry.table, tuple(entry.match)) in self._handles:
            self.modify(entry)
        else:
            self.insert(entry)

    def delete(self, entry: Entry) -> None:
        """Deletes the entry with this table and match."""
        self.switch.table_delete(self.names[entry.table], self._handles.pop((entry.table, tuple(entry.match))))

    # -- a job -----------------------------------------------------------------------------------------------

    def admit(self, worker: int, host: Host, job: int = 0) -> None:
        self.put(entries.address(host, job, worker))
        self.put(entries.member(host, job, worker))

    def expel(self, worker: int, host: Host, job: int = 0) -> None:
        self.delete(entries.member(host, job, worker))

    def start_job(
        self,
        hosts: Mapping[int, Host],
        fields: PolicyFields,
        *,
        slots: int,
        vector_length: int,
        job: int = 0,
        session: int = 1,
        epoch: int = 1,
    ) -> None:
        """Installs a job whose workers have joined. hosts: by worker."""
        self.set_group(hosts, job)
        for entry in entries.running_job(
            job, hosts, fields, slots=slots, vector_length=vector_length, session=session, epoch=epoch
        ):
            self.put(entry)

    def set_group(self, hosts: Mapping[int, Host], job: int = 0) -> None:
        """Sets who gets the copies of a release, by worker."""
        self.switch.multicast_set(entries.JOB_GROUPS + job, entries.replicas(hosts))

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
