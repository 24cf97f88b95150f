"""How fast is it? Ratios to peers, profiles, and how long live swaps take."""
