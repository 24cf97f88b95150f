"""The controller's side of P4Runtime: writing to and reading from switches."""
