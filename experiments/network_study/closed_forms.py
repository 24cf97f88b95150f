"""The methods' times by formula, in seconds. The simulation has to agree where flows contend for the bisection only.

h: hosts of a leaf; m: leaves; n = h m; r: the bisection ratio; S: servers; u: seconds that a link takes for the
gradient's payload. A step in which links carry payload both ways is longer by the acknowledgements' share, 1 + cross
traffic. In the docstrings latencies are left out.
"""

from __future__ import annotations

from math import log2

from serene.experiments.network_study.exchange import SERVER_SHARE, Exchange
from serene.experiments.network_study.flows.solver import Model


def _unit(exchange: Exchange, model: Model) -> float:
    return exchange.size / (model.bandwidth_factor * exchange.network.bandwidth)


def _latency(exchange: Exchange, model: Model, switches: float) -> float:
    return switches * exchange.network.switch_latency * model.latency_factor


def _far(exchange: Exchange) -> int:
    """How many switches are between hosts of different leaves that are farthest apart."""
    return exchange.network.longest - 1 if exchange.network.leaves > 1 else 1


def flat_butterfly(exchange: Exchange, model: Model) -> float:
    """u (log2 of the hosts below the thin layer + log2 of the groups above it / r), both ways."""
    network = exchange.network
    below = network.hosts // network.groups
    steps = log2(below) + log2(network.groups) / network.ratio
    latency = sum(
        _latency(exchange, model, 2 * layer - 1) * log2(count) for layer, count in enumerate(_groups(exchange), start=1)
    )
    return _unit(exchange, model) * (1 + model.cross_traffic) * steps + latency


def _groups(exchange: Exchange) -> list[int]:
    """How many branches the switches of each layer join, from the lowest layer up."""
    network = exchange.network
    return [network.half, network.groups] if network.layers == 2 else [network.half, network.half, network.groups]


def layered_butterfly(exchange: Exchange, model: Model) -> float:
    """u (2 log2 h one way + log2 m both ways)."""
    tree, *above = _groups(exchange)
    steps = 2 * log2(tree) + (1 + model.cross_traffic) * log2(exchange.network.leaves)
    latency = 2 * log2(tree) * _latency(exchange, model, 1) + sum(
        log2(count) * _latency(exchange, model, 2 * layer - 1) for layer, count in enumerate(above, start=2)
    )
    return _unit(exchange, model) * steps + latency


def servers_distributed(exchange: Exchange, model: Model) -> float:
    """2 u (n - S) / S: a server's link first receives, then sends, a part for every worker."""
    servers = exchange.network.hosts // SERVER_SHARE
    steps = 2 * (SERVER_SHARE - 1) * _unit(exchange, model)
    return steps + 2 * servers * _latency(exchange, model, _far(exchange))


def servers_packed(exchange: Exchange, model: Model) -> float:
    """2 u times the load of a server's link, or of the links out of the servers' leaves or pods, whichever is
    larger."""
    network = exchange.network
    servers = network.hosts // SERVER_SHARE
    below = network.hosts // network.groups  # hosts under one thinned bundle of links
    inside = min(servers, below)
    workers_outside = network.hosts - servers - (below * -(-servers // below) - servers)
    bundle = inside * (workers_outside / servers) / (network.ratio * below)
    load = max(SERVER_SHARE - 1, bundle)
    return 2 * load * _unit(exchange, model) + 2 * servers * _latency(exchange, model, _far(exchange))


def ring(exchange: Exchange, model: Model) -> float:
    """2 u (n - 1) / n, both ways. Every step adds a latency."""
    hosts = exchange.network.hosts
    payload = 2 * (hosts - 1) / hosts * _unit(exchange, model) * (1 + model.cross_traffic)
    return payload + 2 * (hosts - 1) * _latency(exchange, model, _far(exchange))


def hierarchical_ring(exchange: Exchange, model: Model) -> float:
    """2 u ((h - 1) / h + (m - 1) / (m h) / r), both ways. With 3 layers r does not count: only a pod's last leaf sends
    out of the pod, one flow through each of its upper switches, so that no flows share a thinned link."""
    network = exchange.network
    half, leaves = network.half, network.leaves
    thin = 1 / network.ratio if network.layers == 2 else 1.0
    inside = 2 * (half - 1) / half
    across = 2 * (leaves - 1) / network.hosts * thin
    latency = 2 * (half - 1) * _latency(exchange, model, 1) + 2 * (leaves - 1) * _latency(
        exchange, model, _far(exchange)
    )
    return _unit(exchange, model) * (1 + model.cross_traffic) * (inside + across) + latency


def leaf_aggregation(exchange: Exchange, model: Model) -> float:
    """u times the headers' overhead times the largest load, both ways at the same time: 1 on a worker's link, m / S on
    a server's, or 2 (1 - 1 / groups) / links up on the thinned links, which leaves' sums and servers' answers share."""
    network, switch = exchange.network, exchange.switch
    servers = network.hosts // SERVER_SHARE
    up = 2 * (1 - 1 / network.groups) / network.up
    load = max(1.0, network.leaves / servers, up) * switch.overhead * (1 + model.cross_traffic)
    round_trip = switch.round_trip(network, 2 * network.longest, 2 * _far(exchange))
    return load * _unit(exchange, model) + _latency(exchange, model, _far(exchange) - 0.5) + round_trip


def leaf_spine_aggregation(exchange: Exchange, model: Model) -> float:
    """u times the headers' overhead, both ways at the same time."""
    network, switch = exchange.network, exchange.switch
    payload = switch.overhead * (1 + model.cross_traffic) * _unit(exchange, model)
    return payload + _latency(exchange, model, 1) + switch.round_trip(network, _far(exchange) + 1, _far(exchange))
