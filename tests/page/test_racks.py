"""The page of a controller of several switches: a worker's rack, and where it waits."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from selenium.webdriver import Chrome

from serene.client import Session
from serene.racks import Racks
from serene.strategy import BSP
from tests.controller.processes import ControllerProcess, missing, until
from tests.controller.trees import Tree, controller
from tests.page.elements import text

SIZES = (2, 1)
WORKERS = sum(SIZES)
VALUES = 700


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    if lacking := missing("embedded"):
        pytest.skip(f"needs {lacking}")
    made = Tree(tmp_path, SIZES)
    yield made
    made.stop()


@pytest.fixture
def daemon(tree: Tree, tmp_path: Path) -> Iterator[ControllerProcess]:
    process = controller(tree, tmp_path / "controller.log")
    yield process
    assert process.stop() == 0
    assert "Traceback" not in process.log.read_text()


def cells(page: Chrome, column: int) -> list[str]:
    """Of the workers' table."""
    script = (
        f"return [...document.querySelectorAll('#workers tbody tr')].map((tr) => tr.children[{column}].textContent)"
    )
    return list(page.execute_script(script))


def test_page_lists_workers_by_rack(browser: Chrome, tree: Tree, daemon: ControllerProcess) -> None:
    daemon.client.create_job(WORKERS, BSP(), racks=SIZES)
    gradient = np.ones(VALUES, np.float32)
    with ThreadPoolExecutor(WORKERS) as pool, ExitStack() as ending:
        ending.callback(daemon.client.delete_job, 0)  # which lets go who waits
        sessions = [Session(tree.client(*Racks(SIZES).place(number), VALUES)) for number in range(WORKERS)]
        list(pool.map(Session.join, sessions))
        browser.get(f"{daemon.url}/")
        until(lambda: cells(browser, 0) == ["0.0", "0.1", "1.0"], "they are named by rack")
        assert text(browser, "#switch-text").startswith("root 127.0.0.1:")
        assert "and 2 leaves, serene_leaf" in text(browser, "#switch-text")
        begins = "return [...document.querySelectorAll('#workers tr.rack td:first-child')].map((td) => td.textContent)"
        assert browser.execute_script(begins) == ["1.0"]

        first = pool.submit(sessions[1].exchange, gradient)
        until(lambda: cells(browser, 1)[1] == "waits for 0.0, 1.0 at the root", "it waits for both")
        second = pool.submit(sessions[2].exchange, gradient)
        until(lambda: cells(browser, 1)[1:] == ["waits for 0.0 at its leaf", "waits for 0.0 at the root"], "for one")
        until(lambda: text(browser, "#waits").count("waits in round 0 of epoch 1 for worker 0.0") == 2, "in words")
        assert "Worker 0.1 waits" in text(browser, "#waits") and "Worker 1.0 waits" in text(browser, "#waits")
        words = browser.execute_script("return document.getElementById('timeline').getAttribute('aria-label')")
        assert "worker 0.1 waited" in words and "worker 1.0 waited" in words
        for done in [pool.submit(sessions[0].exchange, gradient), first, second]:
            done.result(120)
        for session in sessions:
            session.client.close()
