"""Transports of a worker's packets."""
