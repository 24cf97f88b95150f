"""What a worker sends and believes, without I/O."""
