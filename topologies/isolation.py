"""Runs a run's processes in a PID namespace of their own, so that no host remains, not even after SIGKILL.

When the first process of the namespace ends, for whatever reason, the kernel kills the others. When the Mininet hosts'
processes end, their network namespaces and both ends of every host's link disappear. The first process is killed when
the process that started the run ends. A link between two switches remains after SIGKILL, because switches share the
caller's network namespace.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable

from serene.process.interrupts import SIGNALS, ended

CLONE_NEWNS, CLONE_NEWPID = 0x00020000, 0x20000000
MS_PRIVATE_RECURSIVE = (1 << 18) | (1 << 14)
PR_SET_PDEATHSIG = 1


def _check(result: int, what: str) -> None:
    """Raises OSError if a function of the C library has failed."""
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def die_with(parent: int) -> None:
    """Makes the kernel kill this process, a child of ``parent``, when ``parent`` ends. If ``parent`` has ended already,
    this process exits at once."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() not in (0, parent):  # 0: the parent, seen from inside a new PID namespace
        os._exit(1)


def in_child(run: Callable[[], int]) -> int:
    """Calls ``run`` in a forked child, whose exit status is the result. The child is killed when this process ends.
    Returns the child's process id."""
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    if child := os.fork():
        return child
    status = 1
    try:
        die_with(parent)
        status = run()
    except SystemExit as exit_:
        status = exit_.code if isinstance(exit_.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def reset_handlers() -> None:
    """Resets a child's signal handlers: the parent's handlers would remove what belongs to the parent. Ignored signals
    stay ignored."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def run_isolated(main: Callable[[], int]) -> int:
    """Calls ``main`` as the first process of a new PID namespace and returns its exit status. Needs root.

    SIGINT, SIGTERM and SIGHUP are forwarded to ``main``, which runs in `interrupts.ended`. When the caller dies,
    ``main`` and all processes that it started are killed. Raises OSError if no namespace can be created.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.unshare(CLONE_NEWPID | CLONE_NEWNS), "cannot make a PID namespace")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until both processes have their handlers

    def first() -> int:
        os.setpgid(0, 0)  # otherwise a terminal's Ctrl-C would also end the commands that clean up
        # The kernel does not deliver signals with the default action to a namespace's first process. So interrupts come
        # only in `ended`, which has handlers.
        reset_handlers()
        # The namespace's /proc is mounted over the old one, which must not change outside. So /proc becomes private;
        # usually one makes / private, but in a chroot / need not be a mount.
        _check(libc.mount(b"none", b"/proc", None, MS_PRIVATE_RECURSIVE, None), "cannot make /proc private")
        _check(libc.mount(b"proc", b"/proc", b"proc", 0, None), "cannot mount /proc")
        return ended(lambda: _unblocked(main, before))

    child = in_child(first)
    forwarding = False

    def forward(number: int, _: object) -> None:
        nonlocal forwarding
        if forwarding:  # the child is interrupted only once; nested handlers would fill the stack under many signals
            return
        forwarding = True
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)
        forwarding = False

    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, forward)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _unblocked(main: Callable[[], int], mask: set[int | signal.Signals]) -> int:
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return main()
