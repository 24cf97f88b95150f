"""Jobs as the controller knows them: no I/O, no clock, no switch."""
