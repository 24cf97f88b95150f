"""From a program to the C file that runs it."""
