"""Generates the C code of a program."""
