"""The fixtures of tests/topologies, for whole runs in Mininet."""

from tests.topologies.conftest import network, target

__all__ = ["network", "target"]
