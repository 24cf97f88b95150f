"""Runs of the P4 program with the workers' real code, in one process and in virtual time: thousands a minute."""
