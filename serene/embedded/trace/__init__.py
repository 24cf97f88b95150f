"""Traces of packets: recording, filters and output."""
