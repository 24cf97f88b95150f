"""Several switches as one: leaves, which exchange packets with workers, and the root, which decides
(docs/hierarchy.md).

A new policy is prepared at the leaves, put in force by one MODIFY at the root, and then written to the leaves as the
one in force. If a controller stops in between, nothing has changed, or a policy is in force that some leaves lack. The
next controller recognises either case, and continues.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from serene import entries
from serene.controller.jobs.plans import Readmission, Start, Swap
from serene.controller.switch import plan_entries, tree_entries
from serene.controller.switch.assembling import assembled
from serene.controller.switch.connection import SwitchError, Unreachable
from serene.controller.switch.counters import WORKER_COUNTERS, Counters
from serene.controller.switch.plan_entries import Installed, InstalledJob
from serene.controller.switch.switch import RETRY_S, P4Runtime, Reach, SwapPhases, Switch, SwitchOptions
from serene.entries import Endpoint
from serene.program import Program
from serene.racks import LeafPolicy, Racks, policies
from serene.strategy import PolicyFields
from serene.wire import ROOT

LOG = logging.getLogger("serene.controller")

T = TypeVar("T")
Read = TypeVar("Read")


class Tree:
    """The root and the leaves, one for each rack, with the operations of a `Switch`. Workers have their numbers in the
    job, and an endpoint has its rack.

    uplink: each leaf's port to the root. slots: by default the compiled number. on_packet: called with rack, port and
    frame for every frame that a leaf punts. on_connected: awaited when all switches are connected, and has to call
    `set_up`.
    """

    def __init__(
        self,
        root: SwitchOptions,
        leaves: Sequence[SwitchOptions],
        uplink: int,
        *,
        on_packet: Callable[[int, int, bytes], None],
        on_connected: Callable[[], Awaitable[None]],
        slots: int | None = None,
        reach: Callable[[SwitchOptions, Program], Reach] = P4Runtime,
    ) -> None:
        of_leaf, of_root = Program.tree(slots)
        self.program = of_leaf
        self._on_connected = on_connected
        self._uplink = uplink
        self._connecting = asyncio.Lock()
        self._racks: dict[int, Racks] = {}  # by job: the workers of each rack
        self._uncompared: set[Switch] = set()  # connected again, and their entries are not compared yet

        def member(options: SwitchOptions, program: Program, rack: int | None) -> Switch:
            def hear(port: int, frame: bytes) -> None:
                if rack is not None:  # nobody joins at the root
                    on_packet(rack, port, frame)

            async def connected() -> None:
                await self._member_connected(switch)

            switch = Switch(options, program, on_packet=hear, on_connected=connected, reach=reach)
            return switch

        ports = range(1, len(leaves) + 1)
        self.root = member(replace(root, ports=ports, others=(of_leaf,)), of_root, None)
        self.leaves = [
            member(replace(leaf, ports=[*leaf.ports, uplink], others=(of_root,)), of_leaf, rack)
            for rack, leaf in enumerate(leaves)
        ]

    # All switches as one

    @property
    def switches(self) -> Sequence[Switch]:
        """The root, and the leaves in the order of their racks."""
        return [self.root, *self.leaves]

    @property
    def rack_count(self) -> int:
        """The number of leaves."""
        return len(self.leaves)

    @property
    def options(self) -> SwitchOptions:
        """The root's."""
        return self.root.options

    @property
    def drop_reasons(self) -> Sequence[str]:
        """Those of any switch."""
        return sorted({reason for switch in self.switches for reason in switch.drop_reasons})

    @property
    def election_id(self) -> int:
        """The root's."""
        return self.root.election_id

    @property
    def connected(self) -> bool:
        """Whether all switches are."""
        return self.trouble is None

    @property
    def trouble(self) -> str | None:
        """The unconnected switches and the reasons; None: all are connected."""
        troubles = [f"{switch.options.name}: {switch.trouble}" for switch in self.switches if switch.trouble]
        return "; ".join(troubles) or None

    async def bring_up(self, deadline_s: float) -> None:
        """All have to be connected at once: one may be lost during the wait for another."""
        now = asyncio.get_running_loop().time
        end = now() + deadline_s
        ups = [asyncio.create_task(switch.bring_up(deadline_s)) for switch in self.switches]
        try:
            await asyncio.gather(*ups)
        finally:
            for up in ups:
                up.cancel()
            await asyncio.wait(ups)
        while not self.connected:
            if now() >= end:
                raise Unreachable(f"not all switches were connected within {deadline_s:g} s: {self.trouble}")
            await asyncio.sleep(RETRY_S)

    async def run(self) -> None:
        await asyncio.gather(*(switch.run() for switch in self.switches))

    async def close(self) -> None:
        await _all(switch.close() for switch in self.switches)

    async def _member_connected(self, switch: Switch) -> None:
        """Compares the switches' entries when all are connected."""
        async with self._connecting:
            if all(other.connected for other in self.switches if other is not switch):
                await self._on_connected()
            else:
                self._uncompared.add(switch)
                await switch.set_up()

    async def set_up(self) -> Installed:
        """Installs the own entries of switches that have just been connected, and returns the entries of all, as if one
        switch held them. Removes parts of incomplete jobs: if a restarted switch has lost its part, the other parts are
        useless. Raises SwitchError."""
        held = [await switch.read_entries() if switch.connected else await switch.set_up() for switch in self.switches]
        found = assembled(held[0], held[1:], self._racks)
        if found.misplaced:
            raise SwitchError(self._in_order(found.misplaced))
        for number, job in found.useless:
            await self.switches[number].write(plan_entries.removal(job, held[number].jobs[job]), missing_ok=True)
        whole = {job: of for job, of in found.installed.jobs.items() if of.complete}
        self._racks = {job: of.racks for job, of in whole.items() if of.racks is not None}
        self._uncompared.clear()
        for job, of in whole.items():
            await self._forget_failed(job, of, held[1:])
            if job in found.unnotified and of.fields is not None:
                for error in (await self._notify(job, of.session, of.epoch, of.fields)).values():
                    raise error
        return found.installed

    async def _forget_failed(self, job: int, of: InstalledJob, held: Sequence[Installed]) -> None:
        """Removes the remains of failed swaps at the leaves, whose table of prepared policies has little room."""
        for rack, leaf in self._leaves_of(job):
            needless = tree_entries.needless_epochs(held[rack].jobs[job].prepared, of.session, of.epoch)
            await leaf.write([-entries.not_prepared(job, *era) for era in needless], missing_ok=True)

    def _in_order(self, misplaced: Mapping[int, int]) -> str:
        """For an error: the right order of the leaves, if running jobs have them as other racks. misplaced: as of
        `Assembled`."""
        names = [leaf.options.name for leaf in self.leaves]
        was = "; ".join(f"{names[place]} is rack {rack} of running jobs" for place, rack in misplaced.items())
        if max(misplaced.values()) >= len(names):
            return f"{was}: expected at least {max(misplaced.values()) + 1} leaves, in their earlier order"
        right = dict.fromkeys(range(len(names)), "")
        right.update({rack: names[place] for place, rack in misplaced.items()})
        others = iter([name for place, name in enumerate(names) if place not in misplaced])
        return f"{was}: expected the leaves in the order {', '.join(name or next(others) for name in right.values())}"

    async def send(self, to: Endpoint, frame: bytes) -> None:
        await self.leaves[to.rack].send(to, frame)

    # Jobs

    async def start(self, plan: Start) -> None:
        """Writes a job to the leaves, then to the root, without its workers' entries in `member`. If that fails,
        removes what was written."""
        self._racks[plan.job] = plan.racks
        here = self._by_rack(plan.job, plan.members)
        session, own, members = plan.policy.session, self.options.own, plan.policy.fields.members
        leaf_policies, root_fields = self._policies(plan.job, plan.policy.fields)
        leaves = {rack: entries.leaf_at(rack, plan.racks.sizes[rack], session) for rack in here}
        root = replace(plan.policy, fields=root_fields)

        async def begin(rack: int) -> None:
            leaf, policy = self.leaves[rack], leaf_policies[rack]
            await leaf.zero_counters(plan.job, sorted(here[rack]))
            await leaf.write(tree_entries.leaf_entries(plan, rack, here[rack], policy, self._uplink, own))
            await leaf.put(entries.policy(plan.job, session, plan.policy.epoch, policy.fields, members))
            decides = entries.root_at(self._uplink, session, own)
            await leaf.write([+entries.member(plan.job, ROOT, decides)])

        try:
            self._require(plan.job)
            await _all(begin(rack) for rack in here)
            await self.root.write(tree_entries.root_entries(plan, leaves, own))
            await self.root.put(plan_entries.policy_entry(plan.job, root))
            await self.root.write([+entries.member(plan.job, rack, at) for rack, at in leaves.items()])
        except SwitchError:
            await self.remove(plan.job)
            raise

    async def admit(self, plan: Start) -> None:
        """As `Switch.admit`."""
        await _all(
            self.leaves[rack].write([+entries.member(plan.job, place, at) for place, at in workers.items()])
            for rack, workers in self._by_rack(plan.job, plan.members).items()
        )

    async def swap(self, plan: Swap) -> SwapPhases:
        """Swaps a policy: prepares it at the leaves, and puts it in force by one MODIFY at the root."""
        phases, _ = await self._swap(plan)
        return phases

    async def _swap(self, plan: Swap) -> tuple[SwapPhases, dict[int, SwitchError]]:
        """As `swap`. Also returns, by rack, the errors of leaves that did not get the policy in force."""
        self._require(plan.job)  # otherwise the connected leaves would be prepared in vain
        policy = plan.policy
        leaf_policies, root_fields = self._policies(plan.job, policy.fields)
        members = policy.fields.members
        began = time.perf_counter()
        await _all(
            leaf.put(entries.prepared(plan.job, policy.session, policy.epoch, leaf_policies[rack], members))
            for rack, leaf in self._leaves_of(plan.job)
        )
        prepared = time.perf_counter()
        await self.root.write([~plan_entries.policy_entry(plan.job, replace(policy, fields=root_fields))])
        flipped = time.perf_counter()
        unnotified = await self._notify(plan.job, policy.session, policy.epoch, policy.fields)
        for error in unnotified.values():
            # It is in force nevertheless. A leaf that comes back gets it then, unless it has lost the job.
            LOG.warning("job %d, epoch %d: %s", plan.job, policy.epoch, error)
        return SwapPhases((prepared - began) * 1e3, (flipped - prepared) * 1e3), unnotified

    async def _notify(self, job: int, session: int, epoch: int, fields: PolicyFields) -> dict[int, SwitchError]:
        """Writes the policy in force to the leaves, and deletes policies that were prepared before it. Returns by rack
        the errors of leaves."""
        racks = self._racks[job]
        unnotified: dict[int, SwitchError] = {}

        async def notify(rack: int, leaf: Switch) -> None:
            here = racks.part(fields, rack)
            try:
                await leaf.put(entries.policy(job, session, epoch, here, fields.members))
                held = (await leaf.read_entries()).jobs.get(job)
                old = tree_entries.old_epochs(held.prepared if held else (), session, epoch)
                await leaf.write([-entries.not_prepared(job, *era) for era in old], missing_ok=True)
            except SwitchError as error:
                unnotified[rack] = error

        await _all(notify(rack, leaf) for rack, leaf in self._leaves_of(job))
        return unnotified

    async def readmit(self, plan: Readmission) -> None:
        """Removes the old process's entries before it writes the new one's. Admits the new one only when its leaf has
        the new epoch. After any failure, this can be repeated."""
        self._require(plan.job)
        rack, place = self._racks[plan.job].place(plan.worker)
        leaf = self.leaves[rack]
        if plan.old is not None:
            await leaf.shut_out(plan.job, place, plan.old)
        here = self._by_rack(plan.job, plan.members)[rack]
        await leaf.put(entries.leaf_group(plan.job, here, self._uplink))
        await leaf.put(entries.address(plan.job, place, plan.new, self.options.own))
        _, unnotified = await self._swap(plan.swap)
        if rack in unnotified:
            raise unnotified[rack]
        await leaf.write([+entries.member(plan.job, place, plan.new)])

    async def shut_out(self, job: int, worker: int, at: Endpoint) -> None:
        """As `Switch.shut_out`."""
        await self.leaves[at.rack].shut_out(job, self._racks[job].place(worker)[1], at)

    async def remove(self, job: int) -> None:
        """Removes the switches' entries of a job. An unreachable switch may have lost them; otherwise they are removed
        when it is back. Raises Unreachable if all are unreachable: then none would have a record that the job is
        over."""
        if not any(switch.connected for switch in self.switches):
            raise Unreachable(f"no switch is reachable: {self.trouble}")

        async def clear(switch: Switch) -> None:
            with contextlib.suppress(Unreachable):
                held = (await switch.read_entries()).jobs.get(job)
                if held is not None and not held.bare:
                    await switch.write(plan_entries.removal(job, held), missing_ok=True)

        await _all(clear(leaf) for leaf in self.leaves)
        await clear(self.root)
        self._racks.pop(job, None)

    # Counters

    async def read_worker_counters(
        self, members: Mapping[int, Sequence[int]], names: Sequence[str] = WORKER_COUNTERS
    ) -> dict[tuple[int, int], Counters]:
        """As of `Switch`, without the workers of leaves that are out of reach."""
        return await self._read(members, lambda leaf, here: leaf.read_worker_counters(here, names))

    async def read_staleness(self, members: Mapping[int, Sequence[int]]) -> dict[tuple[int, int], list[int]]:
        """As of `Switch`, without the workers of leaves that are out of reach."""
        return await self._read(members, lambda leaf, here: leaf.read_staleness(here))

    async def read_drops(self) -> dict[str, int]:
        """The sums over all switches; for an unreachable one, those of the last read."""
        await _all(switch.read_drops() for switch in self.switches if switch.connected)
        total: Counter[str] = Counter(dict.fromkeys(self.drop_reasons, 0))
        for switch in self.switches:
            total.update(switch.drops)
        return dict(total)

    async def _read(
        self,
        members: Mapping[int, Sequence[int]],
        read: Callable[[Switch, Mapping[int, Sequence[int]]], Awaitable[dict[tuple[int, int], Read]]],
    ) -> dict[tuple[int, int], Read]:
        racks = dict(self._racks)  # a copy: a job may be lost while the leaves are read

        async def of(rack: int, leaf: Switch) -> dict[tuple[int, int], Read]:
            here: dict[int, list[int]] = {}
            for job, workers in members.items():
                placed = [racks[job].place(worker) for worker in workers] if job in racks else []
                here[job] = [place for where, place in placed if where == rack]
            found = await read(leaf, {job: places for job, places in here.items() if places})
            return {(job, racks[job].first(rack) + place): value for (job, place), value in found.items()}

        parts = await _all(of(rack, leaf) for rack, leaf in enumerate(self.leaves) if leaf.connected)
        return {who: value for part in parts for who, value in part.items()}

    # Racks

    def _leaves_of(self, job: int) -> list[tuple[int, Switch]]:
        """The racks, with their leaves, that have workers of a job. Raises SwitchError if there is no such job."""
        if job not in self._racks:
            raise SwitchError(f"the switches no longer have job {job}")
        return [(rack, self.leaves[rack]) for rack, size in enumerate(self._racks[job].sizes) if size]

    def _require(self, job: int) -> None:
        """Raises SwitchError unless the root and all leaves of a job are connected, and their entries are compared."""
        for switch in (self.root, *(leaf for _, leaf in self._leaves_of(job))):
            switch.primary()
            if switch in self._uncompared:
                away = "; ".join(other.options.name for other in self.switches if not other.connected)
                raise Unreachable(f"{switch.options.name} was connected again, and waits for {away}")

    def _by_rack(self, job: int, members: Mapping[int, Endpoint]) -> dict[int, dict[int, Endpoint]]:
        """Workers by rack and by their numbers in it."""
        here: dict[int, dict[int, Endpoint]] = {rack: {} for rack, _ in self._leaves_of(job)}
        for worker, at in members.items():
            rack, place = self._racks[job].place(worker)
            here[rack][place] = at
        return here

    def _policies(self, job: int, fields: PolicyFields) -> tuple[list[LeafPolicy], PolicyFields]:
        """A compiled strategy at each leaf, by numbers in the rack, and at the root."""
        racks = self._racks[job]
        leaves, root = policies(fields, [racks.mask(rack) for rack in range(len(racks.sizes))])
        return [replace(leaf, fields=racks.part(leaf.fields, rack)) for rack, leaf in enumerate(leaves)], root


async def _all(work: Iterable[Awaitable[T]]) -> list[T]:
    """Awaits all concurrently. Raises the first error, but only when all have ended, so that no write follows."""
    results = await asyncio.gather(*work, return_exceptions=True)
    done: list[T] = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        done.append(result)
    return done
