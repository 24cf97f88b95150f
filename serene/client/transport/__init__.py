"""How a worker's packets reach the switch."""
