"""What the methods have to do: exchange a gradient among all hosts of a network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serene.errors import SereneError
from serene.experiments.network_study.flows.clos import Clos, Ints
from serene.experiments.network_study.switch import SwitchSizes

SERVER_SHARE = 8  # one host in eight is a parameter server


class BadMethod(SereneError):
    """A method does not exist, or the network's size does not allow it; the message says what is valid."""


@dataclass(frozen=True)
class Exchange:
    """One exchange of a gradient of ``size`` bytes among all hosts of a network."""

    network: Clos
    size: float
    switch: SwitchSizes

    @property
    def hosts(self) -> Ints:
        """The nodes that are hosts, int64[hosts]."""
        return np.arange(self.network.hosts)

    @property
    def places(self) -> Ints:
        """Which host of a leaf has its special role (head, server), int64[leaves]: another one in each leaf and pod. If
        they were the same in all leaves, static routes by destination would use the same upper switch for all of
        them."""
        leaves = np.arange(self.network.leaves)
        pods = leaves // self.network.half if self.network.layers == 3 else 0
        return (leaves + pods) % self.network.half

    @property
    def heads(self) -> Ints:
        """The head of every leaf, int64[leaves]."""
        return np.arange(self.network.leaves) * self.network.half + self.places
