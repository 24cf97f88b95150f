"""``python -m experiments.run``: begins before what it needs is imported."""

from serene.interrupts import STATUS, end_quietly


def main() -> int:
    with end_quietly():
        from experiments.run import cli
    try:
        return cli.main()
    except KeyboardInterrupt:  # before the run had begun
        return STATUS


if __name__ == "__main__":
    raise SystemExit(main())
