"""Emulated networks: Mininet topologies, and the switches and the controller that run in them.

Mininet's own command, `mn`, imports this package into the system's Python. So nothing here may need more than Mininet,
the standard library, and modules of Serene that need no more either.
"""
