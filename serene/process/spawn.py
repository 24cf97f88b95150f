"""Command lines that run our own modules as separate processes."""

from __future__ import annotations

import os
import sys

# `python -m` looks for modules in the current folder first. The option -P forbids that, but Python 3.10 lacks it.
RUN = (
    "import sys; sys.path[:] = filter(None, sys.path); import runpy; del sys.argv[0]; "
    "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)


def module(name: str, *arguments: str) -> list[str]:
    """The command that runs an installed module, independent of the current folder's contents."""
    return [sys.executable, "-c", RUN, name, *arguments]


def started() -> list[str]:
    """How this process was started, without its arguments: ``python -m MODULE``, or the program's name."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return ["python", "-m", spec.name.removesuffix(".__main__")] if spec else [os.path.basename(sys.argv[0])]
