"""The fast path: C, compiled as one unit on first use."""
