"""A flow-level network simulator: Clos networks, schedules of flows, and max-min fair sharing. SimGrid is its
reference."""
