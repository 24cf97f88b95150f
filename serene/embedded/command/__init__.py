"""``serene-switch``."""
