"""The paper's future work: its methods, and aggregation in the switches, are measured on an emulated Clos network of
Mininet hosts, and compared with the simulation of the same network."""
