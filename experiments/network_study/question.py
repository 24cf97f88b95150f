"""``serene-netstudy``. Ctrl-C ends it cleanly already while its modules are imported."""

from serene.process.interrupts import end_quietly, ended


def main() -> int:
    end_quietly()
    from serene.experiments.network_study import question_command

    return ended(question_command.main)


if __name__ == "__main__":
    raise SystemExit(main())
