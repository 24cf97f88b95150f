"""Measures speed: ratios to peers, profiles, and how long live swaps take."""
