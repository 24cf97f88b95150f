"""Whole runs need what Mininet networks need."""

from tests.topologies.conftest import network, target

__all__ = ["network", "target"]
