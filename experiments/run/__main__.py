"""``python -m serene.experiments.run``. Ctrl-C ends it cleanly already while the modules of the run are imported."""

import os

from serene.process.interrupts import end_quietly, ended

# NumPy and PyTorch must not start threads of their own: the workers are forked from this process (forked.py), and a
# fork has only the thread that called it.
os.environ["OMP_NUM_THREADS"] = "1"


def main() -> int:
    end_quietly()
    from serene.process.at_exit import importing

    with importing():
        from serene.experiments.run import cli

    return ended(cli.main)


if __name__ == "__main__":
    raise SystemExit(main())
