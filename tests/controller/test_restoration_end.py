"""Members change when a restoration is complete, but not ended yet."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from serene.client import Client
from serene.controller import upkeep
from serene.strategy import SSP
from tests.controller.coordinating import PATIENCE_S, commanding, played, rejoin
from tests.controller.processes import SwitchProcess

ASKS_THE_SWITCH = True  # in this process: at a Unix socket, which the command line does not take


@pytest.mark.parametrize("change", ["left", "evicted", "restarted"])
@played
async def test_membership_change_after_restoration_takes_the_later_epoch(
    switch: SwitchProcess, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """The end of the restoration begins an epoch itself. A change planned before it would write an older epoch over
    that one, or keep the restoration's BSP in force."""
    monkeypatch.setattr(upkeep, "TICK_S", 1e6)  # the change finds the restoration complete, but not ended

    async with commanding(switch.grpc) as coordinator:
        await coordinator.create_job(3, SSP(2))
        job = coordinator.jobs[0]
        members = [Client(switch.transport(worker), 0, worker, 5, silence_s=0.4) for worker in range(3)]
        await asyncio.gather(*(asyncio.to_thread(member.join) for member in members))
        await asyncio.gather(*(asyncio.to_thread(member.exchange, np.ones(5, np.float32)) for member in members))
        switch.restart()
        await asyncio.gather(*(asyncio.to_thread(rejoin, member) for member in members))
        assert (job.restoring, job.epoch) == (True, 1)
        if change == "evicted":
            await coordinator.set_evicted(0, 2, True)
        elif change == "left":
            assert not await asyncio.to_thread(members[2].leave, PATIENCE_S)  # the job is not over
        else:
            members[2].close()
            members[2] = Client(switch.transport(2), 0, 2, 5)
            await asyncio.to_thread(members[2].join)
        assert [begun.epoch for begun in job.history if begun.session == job.session] == [1, 2, 3]
        assert (job.restoring, job.in_force, job.epoch) == (False, SSP(2), 3)
        assert job.members() == ([0, 1, 2] if change == "restarted" else [0, 1])
        for member in members:
            member.close()
        await coordinator.delete_job(0)
