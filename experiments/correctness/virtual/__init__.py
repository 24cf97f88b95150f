"""The P4 program with real workers' code, in one process and in virtual time: thousands of runs a minute."""
