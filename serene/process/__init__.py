"""Signals, files, locks, memory and child processes. `interrupts` imports no other module of Serene."""
