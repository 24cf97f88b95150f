"""``python -m controller`` is ``serenectl``."""

from controller.cli import main

if __name__ == "__main__":
    main()
