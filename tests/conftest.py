"""For all tests: Ctrl-C means what it means in a terminal, also where the tests were started in the background.

A shell without job control starts background jobs with SIGINT ignored, and every process of a test would inherit that.
"""

import signal

from hypothesis import Phase, settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test asserts by the clock: an example may take as long as a busy machine makes it take.
settings.register_profile("no-deadline", deadline=None)
settings.register_profile("first-failure", deadline=None, phases=[Phase.explicit, Phase.generate])  # make mutants
settings.load_profile("no-deadline")
