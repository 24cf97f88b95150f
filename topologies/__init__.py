"""Emulated networks: Mininet topologies, and the switches and the controller that run in them.

Mininet's own command, `mn`, imports this package into the system's Python. So modules here import only Mininet, the
standard library, and modules of Serene with the same restriction.
"""
