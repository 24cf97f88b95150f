"""Workers' requests that the data plane punts to the controller, and their answers."""
