"""The paper's future work: its methods, and aggregation in the switches, on an emulated Clos network of Mininet hosts,
beside the simulation of the same network."""
