"""Emulated networks: Mininet topologies and the switches and controller that run in them.

Imported by Mininet's own Python too, so nothing here needs more than Mininet and the standard library.
"""
