"""What is known at one moment, as a typed model; and what follows from it."""
