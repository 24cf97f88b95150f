"""A flow-level network simulator: Clos networks, schedules of flows, max-min fair sharing; SimGrid as the reference."""
