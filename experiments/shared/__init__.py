"""What the rooms of ``experiments`` share: a pool of processes, the frame of a study, one look for pictures."""
