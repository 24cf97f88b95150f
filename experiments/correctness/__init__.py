"""Checks that the protocol's properties hold: many random runs in virtual time, and one very long run."""
