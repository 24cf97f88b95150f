"""A loaded program's control plane: entries, profiles, counters, meters, registers."""
