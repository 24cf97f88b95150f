"""``python -m controller`` is ``serenectl``."""

from controller.commands.cli import main

if __name__ == "__main__":
    main()
