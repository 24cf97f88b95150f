"""``serenectl``: the controller's command line."""
