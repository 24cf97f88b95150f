"""The main job: one training run through the switch, with its network, its faults and its results."""
