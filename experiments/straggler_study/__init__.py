"""The straggler study: the paper's experiments, with real processes in Mininet and in virtual time."""
