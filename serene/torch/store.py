"""PyTorch's store, through which ranks tell each other things: keys of one attempt, and questions asked in a thread."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, TimeoutError
from typing import TypeVar

from torch._C._distributed_c10d import PrefixStore, Store

ANSWER_TIMEOUT_S = 5.0  # for the store to answer

T = TypeVar("T")


def of_this_attempt(store: Store) -> PrefixStore:
    """The store with keys of its own for each attempt: ranks that torchrun starts again would else find what the ranks
    before them have left there."""
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return PrefixStore(f"attempt {attempt}", store)


class Questions:
    """Questions to a store, asked one after the other in a thread: while the process that keeps the store is stopped,
    or its host is cut off, the store neither answers nor fails."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: deque[tuple[Callable[[], object], Future[None]]] = deque()
        self._running = False

    @property
    def all_answered(self) -> bool:
        """Whether no question is waiting or being asked."""
        return not self._running

    def ask(self, question: Callable[[], object]) -> None:
        """Has a question asked, without waiting for its answer; an error is dropped."""
        self._add(question)

    def answer(self, question: Callable[[], T]) -> T:
        """The answer to a question. Raises what the question does, and RuntimeError after ANSWER_TIMEOUT_S without an
        answer."""
        answers: list[T] = []
        try:
            self._add(lambda: answers.append(question())).result(ANSWER_TIMEOUT_S)
        except TimeoutError:
            raise RuntimeError(f"PyTorch's store has not answered for {ANSWER_TIMEOUT_S:g} s") from None
        return answers[0]

    def _add(self, question: Callable[[], object]) -> Future[None]:
        done: Future[None] = Future()
        with self._lock:
            self._asked.append((question, done))
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="serene-store", daemon=True).start()
        return done

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._asked:
                    self._running = False
                    return
                question, done = self._asked.popleft()
            try:
                question()
            except BaseException as error:
                done.set_exception(error)
            else:
                done.set_result(None)
