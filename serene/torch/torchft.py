"""torchft's process group through the switch: replicas die and come back while the others continue.

    manager = torchft.Manager(pg=serene.torch.torchft.ProcessGroupSerene(), ...)

torchft (PyPI's torchft-nightly) forms a quorum of replicas before each step. If it has changed, the group is made again
of the present replicas: they get another job on the switch, and the one before is over.
"""

from __future__ import annotations

from torch.distributed import PrefixStore, ProcessGroup, Store  # type: ignore[attr-defined]
from torchft.process_group import ProcessGroupWrapper

from serene.torch.group import SwitchGroup


class _Group(SwitchGroup):
    ends_backward = False  # the manager gets an error from the work, and discards the step


class ProcessGroupSerene(ProcessGroupWrapper):  # type: ignore[misc]  # torchft may be missing where types are checked
    """A group of replicas, for `torchft.Manager`. timeout: for a collective, and for each step of making the group."""

    def _create_pg(self, store: Store, rank: int, world_size: int) -> ProcessGroup:
        return _Group(PrefixStore("torchft", store), rank, world_size, self._timeout)

    def errored(self) -> Exception | None:
        """The error of a failed collective; None if none has failed since the group was made."""
        return self._pg.error if isinstance(self._pg, SwitchGroup) else None

    def shutdown(self) -> None:
        """Leaves the job when unfinished collectives have ended."""
        if self._pg is not None:
            self._pg.shutdown()
        super().shutdown()

    def getBackendName(self) -> str:
        return "torchft-serene"
