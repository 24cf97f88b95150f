"""Jobs as the controller knows them, without I/O."""
