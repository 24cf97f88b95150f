"""A process tree that cannot outlive its root.

Everything of a run lives in a PID namespace of its own. When its first process ends, for whatever reason, the kernel
kills the rest; with the hosts' processes go their network namespaces, and with those both ends of every host's link.
The first process dies with the one that started it. So of hosts nothing is left behind, not even after SIGKILL; a link
between two switches, which share the caller's network, stays then.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable

from serene.interrupts import SIGNALS, ended

CLONE_NEWNS, CLONE_NEWPID = 0x00020000, 0x20000000
MS_PRIVATE_RECURSIVE = (1 << 18) | (1 << 14)
PR_SET_PDEATHSIG = 1


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def die_with(parent: int) -> None:
    """The kernel kills this process, a child of ``parent``, when that ends; also if it has ended already."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() not in (0, parent):  # 0: the parent, seen from inside a new PID namespace
        os._exit(1)


def run_isolated(main: Callable[[], int]) -> int:
    """Calls ``main`` as the first process of a new PID namespace; its exit status. Needs root.

    SIGINT, SIGTERM and SIGHUP reach ``main``, which runs in `serene.interrupts.ended`; the caller's death kills it and
    everything it started.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.unshare(CLONE_NEWPID | CLONE_NEWNS), "cannot make a PID namespace")
    parent = os.getpid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # each has to know first whose signals they are
    child = os.fork()
    if child == 0:
        status = 1
        try:
            die_with(parent)
            os.setpgid(0, 0)  # or a terminal's Ctrl-C would end the commands that it clears up with
            for number in SIGNALS:  # the first process of a namespace has no default: none comes but in `ended`
                if signal.getsignal(number) is not signal.SIG_IGN:
                    signal.signal(number, signal.SIG_DFL)
            # Ours is mounted on top of it, and must not appear outside. (In a chroot, / is no mount to ask this of.)
            _check(libc.mount(b"none", b"/proc", None, MS_PRIVATE_RECURSIVE, None), "cannot make /proc private")
            _check(libc.mount(b"proc", b"/proc", b"proc", 0, None), "cannot mount /proc")
            status = ended(lambda: _unblocked(main, before))
        except SystemExit as exit_:
            status = exit_.code if isinstance(exit_.code, int) else 1
        except Exception:
            traceback.print_exc()
        finally:
            with contextlib.suppress(OSError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)

    def forward(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, forward)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _unblocked(main: Callable[[], int], mask: set[int | signal.Signals]) -> int:
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return main()
