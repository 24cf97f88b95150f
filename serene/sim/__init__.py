"""One job in one process: the compiled P4 program, its entries, and hosts that are not there."""
