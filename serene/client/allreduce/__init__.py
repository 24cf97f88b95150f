"""All-reduce of vectors of any length, through a pool of slots."""
