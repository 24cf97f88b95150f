"""Calls in a process of their own, so that a crash is a result, too."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Crashed(Exception):
    """The process ended during the call."""


class Apart:
    """One process for call after call; after a crash, a new one."""

    def __init__(self) -> None:
        self._pool = self._started()

    @staticmethod
    def _started() -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))

    def __call__(self, function: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
        """Returns or raises what the function returns or raises in the other process. Raises Crashed."""
        try:
            return self._pool.submit(function, *arguments, **named).result()
        except BrokenProcessPool as error:
            self._pool = self._started()
            raise Crashed("the process ended") from error

    def __enter__(self) -> Apart:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()
