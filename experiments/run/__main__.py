"""``python -m experiments.run``: begins before what it needs is imported."""

import os

from serene.interrupts import end_quietly, ended

# Of NumPy's arithmetic and PyTorch's, in the workers: they are forked from this process (forked.py), which therefore
# must not start any more.
os.environ["OMP_NUM_THREADS"] = "1"


def main() -> int:
    end_quietly()
    from experiments.run import cli

    return ended(cli.main)


if __name__ == "__main__":
    raise SystemExit(main())
