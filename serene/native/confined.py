"""Runs a command with as few rights as it needs: ``python -I confined.py UID SECONDS COMMAND ...``.

It is a program of its own, because limits and user ids belong to the process. Changing them between fork and exec is
not safe in a process with threads. UID is an unused user id, or - for the present one. The exit status is 126 if the
command cannot be started.
"""

import ctypes
import os
import resource
import sys

MEMORY_BYTES = 8 << 30
FILE_BYTES = 512 << 20
PR_SET_NO_NEW_PRIVS = 38
CLONE_NEWNET, CLONE_NEWIPC = 0x40000000, 0x08000000


def limit(what: int, most: int) -> None:
    _, hard = resource.getrlimit(what)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (most, most))


def main() -> None:
    user, seconds, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    limit(resource.RLIMIT_CPU, seconds)
    limit(resource.RLIMIT_AS, MEMORY_BYTES)
    limit(resource.RLIMIT_FSIZE, FILE_BYTES)
    limit(resource.RLIMIT_CORE, 0)
    libc = ctypes.CDLL(None)
    if user != "-":
        libc.unshare(CLONE_NEWNET | CLONE_NEWIPC)  # some containers refuse this; the command then has network access
        os.setgroups([])
        os.setresgid(int(user), int(user), int(user))
        os.setresuid(int(user), int(user), int(user))
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    os.umask(0o077)
    os.execv(command[0], command)


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        print(f"{sys.argv[3]}: {error.strerror}", file=sys.stderr)
        raise SystemExit(126) from None
