"""A worker's place in a job: joining, exchanging, restoring, leaving."""
