"""The switch at the other end of P4Runtime: what is written to it and what is read from it."""
