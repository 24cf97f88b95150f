"""A packet's way through the program: recorded, filtered and shown."""
