"""The protocol's rules on a worker's side, without I/O."""
