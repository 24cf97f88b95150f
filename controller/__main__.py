"""``serenectl``, and ``python -m controller``: begins before what it needs is imported."""

from typing import NoReturn

from serene.interrupts import end_quietly


def main() -> NoReturn:
    with end_quietly():
        from controller.commands import cli
    cli.main()


if __name__ == "__main__":
    main()
