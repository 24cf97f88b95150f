"""What a process does with signals, files, locks, memory and children. `interrupts` needs nothing else of ours."""
