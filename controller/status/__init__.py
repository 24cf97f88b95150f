"""The state at one moment as a typed model, and texts and metrics computed from it."""
