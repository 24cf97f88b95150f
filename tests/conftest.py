"""For all tests: Ctrl-C means what it means in a terminal, also where the tests were started in the background.

A shell without job control starts background jobs with SIGINT ignored, and every process of a test would inherit that.
"""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
