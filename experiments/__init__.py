"""Runs that end in numbers and pictures."""
