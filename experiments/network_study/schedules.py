"""The methods' schedules: an exchange as steps of flows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from serene.experiments.network_study.exchange import SERVER_SHARE, BadMethod, Exchange
from serene.experiments.network_study.flows.clos import Ints
from serene.experiments.network_study.flows.solver import Step

# The paper's four.


def flat_butterfly(exchange: Exchange) -> Iterator[Step]:
    """Recursive doubling over all hosts: in step i every host exchanges its whole sum with the host 2^i away."""
    for bit in _bits(exchange.network.hosts):
        yield Step(exchange.hosts, exchange.hosts ^ bit, exchange.size)


def layered_butterfly(exchange: Exchange, heads: Ints | None = None) -> Iterator[Step]:
    """A tree in every leaf adds up to its head, the heads do a butterfly, and the sum goes back down the trees. heads:
    other ones than `Exchange.heads`."""
    half = exchange.network.half
    heads = exchange.heads if heads is None else heads
    first = heads // half * half
    return _layered(exchange, first[:, None] + (np.arange(half) ^ (heads - first)[:, None]))


def _layered(exchange: Exchange, members: Ints) -> Iterator[Step]:
    """``members``: the hosts that take part, int64[leaves, hosts of each], with the head of each leaf first."""
    rank = np.arange(members.shape[1])
    trees = []
    for bit in (1 << step for step in range((rank.size - 1).bit_length())):
        child = rank[(rank & bit > 0) & (rank & (bit - 1) == 0)]
        trees.append((members[:, child].ravel(), members[:, child ^ bit].ravel()))
    heads = members[:, 0]
    for child, parent in trees:
        yield Step(child, parent, exchange.size)
    for bit in _bits(heads.size):
        yield Step(heads, heads[np.arange(heads.size) ^ bit], exchange.size)
    for child, parent in reversed(trees):
        yield Step(parent, child, exchange.size)


def layered_butterfly_fixed_heads(exchange: Exchange) -> Iterator[Step]:
    """The layered butterfly with every leaf's first host as its head."""
    return layered_butterfly(exchange, np.arange(exchange.network.leaves) * exchange.network.half)


# Butterflies over only those hosts that are workers beside distributed servers: the paper expects the same times.


def flat_butterfly_fewer_workers(exchange: Exchange) -> Iterator[Step]:
    """A flat butterfly over workers whose number is no power of two. Those that are too many send their gradients to a
    neighbour before, and get the sum afterwards, as in MPICH (Thakur, Rabenseifner and Gropp, IJHPCA 2005)."""
    workers = np.setdiff1d(exchange.hosts, _spread(exchange))
    core = 1 << (workers.size.bit_length() - 1)
    paired = 2 * (workers.size - core)
    idle, busy = workers[:paired:2], workers[1:paired:2]
    rest = np.concatenate([busy, workers[paired:]])
    yield Step(idle, busy, exchange.size)
    for bit in _bits(core):
        yield Step(rest, rest[np.arange(core) ^ bit], exchange.size)
    yield Step(busy, idle, exchange.size)


def layered_butterfly_fewer_workers(exchange: Exchange) -> Iterator[Step]:
    """A layered butterfly in which each leaf's tree has no servers."""
    half = exchange.network.half
    each = _each(exchange)
    places = exchange.places[:, None] * each + each + np.arange(half - each)
    return _layered(exchange, np.arange(exchange.network.leaves)[:, None] * half + places % half)


def servers_distributed(exchange: Exchange) -> Iterator[Step]:
    """Parameter servers in every leaf, as other hosts of it from leaf to leaf. Neighbouring workers begin with
    different servers."""
    return _servers(exchange, _spread(exchange), rotating=True)


def servers_packed(exchange: Exchange) -> Iterator[Step]:
    """Parameter servers that fill whole leaves."""
    return _servers(exchange, exchange.hosts[: exchange.network.hosts // SERVER_SHARE], rotating=True)


def servers_same_order(exchange: Exchange) -> Iterator[Step]:
    """Distributed parameter servers, with all workers in a naive loop: every worker begins with the first server."""
    return _servers(exchange, _spread(exchange), rotating=False)


def servers_fixed_places(exchange: Exchange) -> Iterator[Step]:
    """Distributed parameter servers at the same places of all leaves."""
    half = exchange.network.half
    return _servers(exchange, exchange.hosts[exchange.hosts % half < _each(exchange)], rotating=True)


def _each(exchange: Exchange) -> int:
    """How many servers a leaf has. Raises BadMethod."""
    each = exchange.network.half // SERVER_SHARE
    if not each:
        raise BadMethod(f"leaves of {exchange.network.half} hosts have no room for one server in {SERVER_SHARE}")
    return each


def _spread(exchange: Exchange) -> Ints:
    """The distributed servers. Raises BadMethod."""
    each = _each(exchange)
    leaf, place = exchange.hosts // exchange.network.half, exchange.hosts % exchange.network.half
    return exchange.hosts[(place - exchange.places[leaf] * each) % exchange.network.half < each]


def _servers(exchange: Exchange, servers: Ints, rotating: bool) -> Iterator[Step]:
    """All workers push, each server's part of the gradient in a step of its own, and then pull likewise. rotating:
    whether workers push to different servers in the same step."""
    workers = np.setdiff1d(exchange.hosts, servers)
    turns = np.arange(workers.size)
    part = exchange.size / servers.size
    for turn in range(servers.size):
        yield Step(workers, servers[(turns + turn if rotating else turns * 0 + turn) % servers.size], part)
    for turn in range(servers.size):
        yield Step(servers[(turns + turn) % servers.size], workers, part)


# Ours.


def ring(exchange: Exchange) -> Iterator[Step]:
    """Reduce-scatter and all-gather around all hosts in order (Patarasuk and Yuan, JPDC 2009). All steps have the same
    flows, so only one is simulated."""
    hosts = exchange.hosts
    yield Step(hosts, np.roll(hosts, -1), exchange.size / hosts.size, times=2 * (hosts.size - 1))


def hierarchical_ring(exchange: Exchange) -> Iterator[Step]:
    """A reduce-scatter around every leaf, then a ring over the leaves for each part, then an all-gather around every
    leaf."""
    half, leaves, hosts = exchange.network.half, exchange.network.leaves, exchange.hosts
    neighbour = hosts // half * half + (hosts + 1) % half
    inside = Step(hosts, neighbour, exchange.size / half, times=half - 1)
    yield inside
    if leaves > 1:
        yield Step(hosts, (hosts + half) % hosts.size, exchange.size / hosts.size, times=2 * (leaves - 1))
    yield inside


def leaf_aggregation(exchange: Exchange) -> Iterator[Step]:
    """Each leaf switch adds up its workers, is one worker of distributed parameter servers, and multicasts their
    answers. The values stream slot by slot, so that all flows are under way at the same time."""
    streams = _leaf_streams(exchange)
    source = np.concatenate([a for a, _, _ in streams])
    target = np.concatenate([b for _, b, _ in streams])
    sizes = np.concatenate([np.full(a.size, size) for a, _, size in streams])
    links = exchange.network.longest  # from the worker to a server, and so many back
    way = exchange.network, 2 * links, 2 * (links - 1)
    limit, delay = exchange.switch.limit(*way), exchange.switch.round_trip(*way)
    yield Step(source, target, sizes, limit=limit, delay=delay)


def leaf_aggregation_in_phases(exchange: Exchange) -> Iterator[Step]:
    """The same without streaming: a leaf forwards its sum only when it is complete."""
    for source, target, size in _leaf_streams(exchange):
        yield Step(source, target, size)


def _leaf_streams(exchange: Exchange) -> list[tuple[Ints, Ints, float]]:
    servers = _spread(exchange)
    workers = np.setdiff1d(exchange.hosts, servers)
    leaf = np.asarray(exchange.network.leaf(workers // exchange.network.half))
    leaves, to = (side.ravel() for side in np.meshgrid(np.unique(leaf), servers, indexing="ij"))
    size = exchange.size * exchange.switch.overhead
    part = size / servers.size
    return [(workers, leaf, size), (leaves, to, part), (to, leaves, part), (leaf, workers, size)]


def leaf_spine_aggregation(exchange: Exchange) -> Iterator[Step]:
    """The switches of all layers add up: leaves their workers, upper switches those below them, each upper switch for a
    part of the slots. The values stream over every link, and come back the same way as multicasts."""
    network, switch = exchange.network, exchange.switch
    lower, upper = network.ends()
    ways = np.array([1, network.up] if network.layers == 2 else [1, network.half, network.half * network.up])
    size = exchange.size * switch.overhead / ways[network.levels]
    used = network.levels < (network.layers if network.leaves > 1 else 1)
    lower, upper, size = lower[used], upper[used], size[used]
    links = network.longest if network.leaves > 1 else 2
    yield Step(
        np.concatenate([lower, upper]), np.concatenate([upper, lower]), np.concatenate([size, size]),
        limit=switch.limit(network, links, links - 1), delay=switch.round_trip(network, links, links - 1),
    )  # fmt: skip


def _bits(count: int) -> list[int]:
    """1, 2, 4 and so on below a power of two. Raises BadMethod for another number."""
    if count & (count - 1):
        raise BadMethod(f"a butterfly over {count} hosts; expected a power of two")
    return [1 << bit for bit in range(count.bit_length() - 1)]
