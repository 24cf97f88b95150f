"""The tree of switches: its rules as a model, random runs of them, and the P4 programs held to both."""
