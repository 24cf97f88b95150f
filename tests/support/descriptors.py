"""A program that has many files open."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

MOST_OF_SELECT = 1024  # descriptors from here on do not fit the sets that select(2) takes


@contextmanager
def many_open() -> Iterator[None]:
    """So many that what is opened in the block has a descriptor beyond those."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_OF_SELECT + 256
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"a process may have {hard} files open here, and this takes {wanted}")
    with ExitStack() as stack:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted) if soft >= 0 else soft, hard))
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        opened = -1
        while opened < MOST_OF_SELECT:
            opened = os.open(os.devnull, os.O_RDONLY)
            stack.callback(os.close, opened)
        yield
