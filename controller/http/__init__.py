"""The HTTP interface, and its client."""
