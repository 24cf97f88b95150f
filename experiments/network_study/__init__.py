"""How much network does training need? Exchange methods on Clos networks, in a flow-level simulator; the MLSys paper's
study, with aggregation inside the switches in it."""
