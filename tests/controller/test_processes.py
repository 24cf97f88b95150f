"""The processes of these tests, where they do not become ready."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controller.processes import Process


@pytest.mark.parametrize("ends", [AssertionError, KeyboardInterrupt])
def test_a_process_that_does_not_become_ready_does_not_stay(tmp_path: Path, ends: type[BaseException]) -> None:
    def never() -> bool:
        raise ends

    process = Process(["sleep", "1000"], tmp_path / "log")
    with pytest.raises(ends):
        process.await_(never, "it is ready")
    assert process.process.returncode is not None


def test_error_for_an_ended_process_quotes_its_log(tmp_path: Path) -> None:
    """By its log, and not only by its command, in which the words are not next to each other."""
    process = Process(["sh", "-c", "printf 'no %s' room; exit 3"], tmp_path / "log")
    with pytest.raises(AssertionError, match="no room"):
        process.await_(lambda: False, "it is ready")
