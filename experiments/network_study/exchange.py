"""What is exchanged: a gradient among all hosts of a network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.network_study.flows.clos import Clos, Ints
from experiments.network_study.switch import SwitchSizes
from serene.errors import SereneError

SERVER_SHARE = 8  # one host in eight is a parameter server


class BadMethod(SereneError):
    """A method that does not exist, or that the network's size does not allow."""


@dataclass(frozen=True)
class Exchange:
    """One exchange of a gradient of ``size`` bytes among all hosts of a network."""

    network: Clos
    size: float
    switch: SwitchSizes

    @property
    def hosts(self) -> Ints:
        return np.arange(self.network.hosts)

    @property
    def places(self) -> Ints:
        """For every leaf, the place in it of what a leaf has one of: another one from leaf to leaf, and from pod to
        pod. With the same one everywhere, static routes by destination send all of it over the same upper switch."""
        leaves = np.arange(self.network.leaves)
        pods = leaves // self.network.half if self.network.layers == 3 else 0
        return (leaves + pods) % self.network.half

    @property
    def heads(self) -> Ints:
        """A host of every leaf."""
        return np.arange(self.network.leaves) * self.network.half + self.places
