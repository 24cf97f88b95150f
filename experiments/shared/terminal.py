"""What commands print: their console, and their tables."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, cast

from rich.console import Console
from rich.table import Table


def console(width: int = 160, *, highlight: bool = True) -> Console:
    """A console as wide as the terminal. width: in columns, where the output is no terminal, so that lines of a log are
    not folded at 80. Text is printed as it is: a path may have brackets in it, which rich would take for markup, and
    bytes that are no text in this locale, which are escaped."""
    if sys.stdout is None:  # the caller has closed it
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (until the process ends)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    wide = None if sys.stdout.isatty() else width
    output = cast(IO[str], _Output(sys.stdout))
    return Console(file=output, width=wide, highlight=highlight, markup=False, emoji=False)


class _Output:
    """A stream for as long as it can be written. A full disk, or a reader that has gone, does not end hours of work
    whose results lie elsewhere."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with self._while_possible():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._while_possible():
            self._stream.flush()

    @contextmanager
    def _while_possible(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            with open(os.devnull, "w") as nobody:  # also for what is still in the stream
                os.dup2(nobody.fileno(), self._stream.fileno())
            with suppress(OSError):
                message = (
                    f"the output cannot be written: {error.strerror}; the work continues, and its results are kept"
                )
                print(message, file=sys.stderr, flush=True)


def table(
    head: Iterable[str], rows: Iterable[Iterable[str]], left: Collection[str] = (), title: str | None = None
) -> Table:
    """A table to print. left: the columns that are aligned to the left."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2), title=title)
    for heading in head:
        shown.add_column(heading, justify="left" if heading in left else "right")
    for row in rows:
        shown.add_row(*row)
    return shown
