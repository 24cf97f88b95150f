"""Training programs whose every gradient goes through the switch: models, data, stragglers, and the loop."""
