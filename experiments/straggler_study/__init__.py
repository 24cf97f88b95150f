"""Which strategy for which straggler: the paper's experiments again, in virtual time and with real processes."""
