"""BMv2's JSON, read and checked: a P4 program as data."""
