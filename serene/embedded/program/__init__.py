"""Reads and checks BMv2's JSON: a P4 program as data."""
