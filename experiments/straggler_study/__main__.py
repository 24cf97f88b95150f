"""``python -m serene.experiments.straggler_study``. Ctrl-C ends it cleanly already while its modules are imported."""

from serene.process.interrupts import end_quietly


def main() -> int:
    end_quietly()
    from serene.experiments.straggler_study import command

    return command.main()


if __name__ == "__main__":
    raise SystemExit(main())
