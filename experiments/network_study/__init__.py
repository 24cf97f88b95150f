"""The network study: how long exchange methods take on Clos networks, by a flow-level simulator. It repeats an MLSys
paper's study, and adds aggregation in the switches."""
