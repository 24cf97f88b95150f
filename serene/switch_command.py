"""``serene-switch``: begins before what it needs is imported."""

import os
import sys

from serene.interrupts import end_quietly


def main() -> None:
    _leave_others_modules()
    with end_quietly():
        from serene.switch import cli
    cli.main()


def _leave_others_modules() -> None:
    """$PYTHONPATH is for whoever starts the switch: a package ``google`` there, as tutorials have, hides protobuf."""
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    others = {os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path} - {ours}
    sys.path[:] = [path for path in sys.path if path not in others]


if __name__ == "__main__":
    main()
