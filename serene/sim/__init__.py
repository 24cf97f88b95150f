"""One job in one process: the compiled P4 program, its entries, and the addresses of simulated hosts."""
