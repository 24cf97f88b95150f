"""Clos networks of two and three layers whose upper layer may be thinned, and the paths that flows take through them.

All switches have ``ports`` ports, half of them down. A lower bisection ratio r means fewer switches at the top: a leaf
of a 2-layer network has r * ports / 2 links up, and so has a pod's upper switch in a 3-layer one (a k-ary fat tree,
Al-Fares et al., SIGCOMM 2008). Each direction of a connection is a link of its own, with the whole bandwidth.

Nodes are numbers: hosts from 0, then leaves, then the pods' upper switches (3 layers only), then the top. Paths go up
as far as necessary, and down again. The routing chooses the way up:

``d-mod-k``  by the destination's number (Zahavi, 2010), as SimGrid's fat trees do, and static routes in practice
``ecmp``     by a hash of source and destination, as switches do that do not know the traffic
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from serene.errors import SereneError, choices

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

RATIOS = (1.0, 0.5, 0.25, 0.125)
ROUTINGS = ("d-mod-k", "ecmp")

# The paper's networks: (layers, hosts) -> (ports, groups). 256 hosts are 4 pods of 16-port switches.
SIZES = {
    (2, 128): (16, 16),
    (2, 512): (32, 32),
    (2, 2048): (64, 64),
    (3, 256): (16, 4),
    (3, 1024): (16, 16),
}


class BadNetwork(SereneError):
    """A network cannot be built, or a flow is between nodes that it does not have; the message states what is valid."""


@dataclass(frozen=True)
class Clos:
    """A Clos network. ``groups``: leaves of a 2-layer network, pods of a 3-layer one. ``ratio``: the bisection ratio.
    ``bandwidth``: of a link, in bytes/s. ``switch_latency``: of each switch on a flow's path, in seconds. ``routing``:
    one of ROUTINGS. Raises BadNetwork."""

    layers: int
    ports: int
    groups: int
    ratio: float = 1.0
    bandwidth: float = 4e9
    switch_latency: float = 0.2e-6
    routing: str = "d-mod-k"

    def __post_init__(self) -> None:
        if self.layers not in (2, 3):
            raise BadNetwork(f"{self.layers} layers; expected 2 or 3")
        if self.ports < 2 or self.ports % 2:
            raise BadNetwork(f"{self.ports} ports; expected an even number")
        if not 1 <= self.groups <= self.ports:
            raise BadNetwork(f"{self.groups} groups of {self.ports}-port switches; expected 1 to {self.ports}")
        if not 0 < self.ratio <= 1 or self.ratio * self.half % 1:
            valid = ", ".join(f"{up}/{self.half}" for up in range(1, self.half + 1))
            raise BadNetwork(f"bisection ratio {self.ratio:g} with {self.ports} ports; expected one of {valid}")
        if self.layers == 3 and self.groups * self.half * self.up % self.ports:
            raise BadNetwork(
                f"bisection ratio {self.ratio:g} with {self.groups} pods leaves links that fill no "
                f"{self.ports}-port switch"
            )
        if not 0 < self.bandwidth < np.inf or not 0 <= self.switch_latency < np.inf:
            raise BadNetwork(
                f"bandwidth {self.bandwidth:g} B/s, switch latency {self.switch_latency:g} s; expected > 0 and >= 0"
            )
        if self.routing not in ROUTINGS:
            raise BadNetwork(f"routing {self.routing!r}; expected {choices(ROUTINGS)}")

    @classmethod
    def of_size(
        cls, hosts: int, ratio: float = 1.0, *, layers: int = 0, bandwidth: float = 4e9,
        switch_latency: float = 0.2e-6, routing: str = "d-mod-k",
    ) -> Clos:  # fmt: skip
        """One of the paper's networks by its number of hosts. Raises BadNetwork."""
        for (depth, size), (ports, groups) in SIZES.items():
            if size == hosts and layers in (0, depth):
                return cls(depth, ports, groups, ratio, bandwidth, switch_latency, routing)
        valid = ", ".join(f"{size} ({depth} layers)" for depth, size in SIZES)
        raise BadNetwork(f"{hosts} hosts{f' on {layers} layers' if layers else ''}; expected one of {valid}")

    # Nodes.

    @property
    def half(self) -> int:
        """A switch's ports down, and so the number of hosts of a leaf."""
        return self.ports // 2

    @property
    def up(self) -> int:
        """How many links up a switch below the top has."""
        return round(self.ratio * self.half)

    @property
    def leaves(self) -> int:
        return self.groups if self.layers == 2 else self.groups * self.half

    @property
    def hosts(self) -> int:
        return self.leaves * self.half

    @property
    def middles(self) -> int:
        """Upper switches of pods; none in a 2-layer network."""
        return 0 if self.layers == 2 else self.groups * self.half

    @property
    def tops(self) -> int:
        """Nodes of the top layer, each with a link to every group. If there are fewer groups than ports, several of
        these nodes are one switch."""
        return self.up if self.layers == 2 else self.half * self.up

    @property
    def top_switches(self) -> int:
        return -(-self.tops * self.groups // self.ports)

    @property
    def switches(self) -> int:
        return self.leaves + self.middles + self.top_switches

    @property
    def equivalents(self) -> int:
        """The worth of all switches in 2x2 switches: one with k ports is worth (k/2)^2 of them, by its crosspoints."""
        return self.switches * self.half**2

    @property
    def nodes(self) -> int:
        return self.hosts + self.leaves + self.middles + self.tops

    def leaf(self, leaf: Ints | int) -> Ints | int:
        """The node of a leaf by its number."""
        return self.hosts + leaf

    def middle(self, pod: Ints | int, index: Ints | int) -> Ints | int:
        """The node of a pod's upper switch."""
        return self.hosts + self.leaves + pod * self.half + index

    def top(self, index: Ints | int) -> Ints | int:
        """A node of the top layer."""
        return self.hosts + self.leaves + self.middles + index

    # Links: all those up, then those down in the same order. Level 0: host to leaf, 1: leaf to above, 2: middle to top.

    @cached_property
    def _levels(self) -> tuple[int, ...]:
        """The number of each level's first link up, and the number of links up."""
        counts = [self.hosts, self.leaves * (self.up if self.layers == 2 else self.half)]
        if self.layers == 3:
            counts.append(self.middles * self.up)
        return tuple(int(number) for number in np.concatenate([[0], np.cumsum(counts)]))

    @property
    def links(self) -> int:
        return 2 * self._levels[-1]

    def ends(self) -> tuple[Ints, Ints]:
        """The lower and the upper nodes of all links up, in the links' order."""
        lower, upper = [np.arange(self.hosts)], [self.hosts + np.arange(self.hosts) // self.half]
        if self.layers == 2:
            lower.append(np.repeat(np.arange(self.leaves), self.up) + self.hosts)
            upper.append(np.asarray(self.top(np.tile(np.arange(self.up), self.leaves))))
        else:
            leaf = np.repeat(np.arange(self.leaves), self.half)
            lower.append(leaf + self.hosts)
            upper.append(np.asarray(self.middle(leaf // self.half, np.tile(np.arange(self.half), self.leaves))))
            middle = np.repeat(np.arange(self.middles), self.up)
            lower.append(middle + self.hosts + self.leaves)
            port = np.tile(np.arange(self.up), self.middles)
            upper.append(np.asarray(self.top(middle % self.half * self.up + port)))
        return np.concatenate(lower), np.concatenate(upper)

    @property
    def levels(self) -> Ints:
        """The level of every link up, in the links' order: 0 from a host, 1 from a leaf, 2 from a pod's upper
        switch."""
        return np.repeat(np.arange(self.layers), np.diff(self._levels))

    @cached_property
    def latencies(self) -> Floats:
        """The latency of every link in seconds: half a switch's latency for each end that is a switch. So a path
        between hosts has one latency for every switch on it, and both directions of a link are alike."""
        ends = np.where(self.levels > 0, 2, 1)
        return np.tile(ends * self.switch_latency / 2, 2)

    # Paths.

    @property
    def longest(self) -> int:
        """How many links the longest path has."""
        return 2 * self.layers

    def paths(self, source: Ints, target: Ints) -> Ints:
        """The links on each flow's path, int64[flows, longest], with -1 where a path is shorter. A flow is between
        hosts and leaves, or between the two ends of a link. Raises BadNetwork."""
        source, target = np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64)
        if source.size and (min(source.min(), target.min()) < 0 or max(source.max(), target.max()) >= self.nodes):
            raise BadNetwork(f"a flow between nodes that do not exist; expected 0 to {self.nodes - 1}")
        if np.any(source == target):
            raise BadNetwork("a flow from a node to itself")
        return self._paths(source, target)

    def _layer(self, node: Ints) -> Ints:
        """The layer of nodes: 0 for hosts, 1 for leaves, and so on up; without middle switches the top's is 2."""
        bounds = np.array([self.hosts, self.hosts + self.leaves, self.hosts + self.leaves + self.middles])
        return np.minimum(np.searchsorted(bounds, node, side="right"), self.layers)

    def _choice(self, source: Ints, target: Ints) -> tuple[Ints, Ints]:
        """The choice of each flow at the leaf, and at the next switch up: which of its links up."""
        first = self.up if self.layers == 2 else self.half
        if self.routing == "d-mod-k":
            # To a switch by the source's number: it has an address for every way down to it, and senders share them.
            number = np.where(target < self.hosts, target, source)
            return number % first, number // first % self.up
        mixed = (source.astype(np.uint64) << np.uint64(32)) ^ target.astype(np.uint64)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)  # splitmix64
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
        return (
            (mixed % np.uint64(first)).astype(np.int64),
            ((mixed >> np.uint64(32)) % np.uint64(self.up)).astype(np.int64),
        )

    def _paths(self, source: Ints, target: Ints) -> Ints:
        result = np.full((source.size, self.longest), -1, dtype=np.int64)
        if not source.size:
            return result
        from_layer, to_layer = self._layer(source), self._layer(target)
        first, second = self._choice(source, target)
        leaf_a, leaf_b = self._leaf_of(source, from_layer), self._leaf_of(target, to_layer)
        base, down = self._levels, self._levels[-1]
        low = (from_layer <= 1) & (to_layer <= 1)
        result[:, 0] = np.where(low & (from_layer == 0), source, -1)
        result[:, -1] = np.where(low & (to_layer == 0), target + down, -1)
        across = low & (leaf_a != leaf_b)
        width = self.up if self.layers == 2 else self.half
        result[:, 1] = np.where(across, base[1] + leaf_a * width + first, -1)
        result[:, -2] = np.where(across, base[1] + leaf_b * width + first + down, -1)
        if self.layers == 3:
            pod_a, pod_b = leaf_a // self.half, leaf_b // self.half
            far = across & (pod_a != pod_b)
            result[:, 2] = np.where(far, base[2] + (pod_a * self.half + first) * self.up + second, -1)
            result[:, 3] = np.where(far, base[2] + (pod_b * self.half + first) * self.up + second + down, -1)
        high = np.flatnonzero(~low)
        if high.size:
            result[high, 0] = self._between(source[high], target[high])
        return result

    def _between(self, source: Ints, target: Ints) -> Ints:
        """The link from each source to its target, two nodes next to each other. Raises BadNetwork."""
        lower, upper = self.ends()
        order = np.argsort(lower * self.nodes + upper)
        wanted = np.minimum(source, target) * self.nodes + np.maximum(source, target)
        keys = (lower * self.nodes + upper)[order]
        at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        if np.any(keys[at] != wanted):
            raise BadNetwork("a flow to or from an upper switch that no single link makes")
        return np.where(source < target, order[at], order[at] + self._levels[-1])

    def _leaf_of(self, node: Ints, layer: Ints) -> Ints:
        """The leaf of a host, or the leaf itself; -1 for a switch above leaves."""
        return np.where(layer == 0, node // self.half, np.where(layer == 1, node - self.hosts, -1))
