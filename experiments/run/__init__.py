"""One training run: its settings, its network, the faults that are played in it, and its results."""
