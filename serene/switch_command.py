"""The entry point of ``serene-switch``. It runs before the command's modules are imported."""

import os
import sys

from serene.process.interrupts import end_quietly, ended


def main() -> int:
    _leave_others_modules()
    end_quietly()
    from serene.process.at_exit import importing

    with importing():
        from serene.embedded.command import cli

    return ended(cli.main)


def _leave_others_modules() -> None:
    """Ignores $PYTHONPATH, which is meant for the caller's programs. With the P4 tutorials it contains a package
    ``google``, which hides protobuf."""
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    others = {os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path} - {ours}
    sys.path[:] = [path for path in sys.path if path not in others]


if __name__ == "__main__":
    raise SystemExit(main())
