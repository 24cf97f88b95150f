"""What others wrote, run on BMv2 and on serene-switch side by side (``make p4-suites``). Nothing of it is in here: the
user names checkouts."""
