"""Requests of workers, which the data plane hands up."""
