"""``python -m experiments.straggler_study``: begins before what it needs is imported."""

from serene.interrupts import end_quietly


def main() -> int:
    end_quietly()
    from experiments.straggler_study import command

    return command.main()


if __name__ == "__main__":
    raise SystemExit(main())
