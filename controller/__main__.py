"""``serenectl``, and ``python -m serene.controller``: handles interrupts before the slow imports begin."""

import sys
from typing import NoReturn

from serene.process.interrupts import end_quietly, ended


def main() -> NoReturn:
    end_quietly()
    from serene.process.at_exit import importing

    with importing():
        from serene.controller.commands import cli

    sys.exit(ended(cli.main))


if __name__ == "__main__":
    main()
