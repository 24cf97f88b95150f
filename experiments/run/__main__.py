"""``python -m experiments.run``: begins before what it needs is imported."""

import os

from serene.interrupts import STATUS, end_quietly

# Of NumPy's arithmetic and PyTorch's, in the workers: they are forked from this process (forked.py), which therefore
# must not start any more.
os.environ["OMP_NUM_THREADS"] = "1"


def main() -> int:
    with end_quietly():
        from experiments.run import cli
    try:
        return cli.main()
    except KeyboardInterrupt:  # before the run had begun
        return STATUS


if __name__ == "__main__":
    raise SystemExit(main())
