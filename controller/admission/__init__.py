"""The requests of workers, which the data plane hands to the controller, and their answers."""
