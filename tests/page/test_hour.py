"""32 workers and an hour of data: the page's memory is bounded, and the page keeps working."""

from __future__ import annotations

from functools import partial

from selenium.webdriver import Chrome

from serene.palette import BLUE, COMPUTING, GREEN, PURPLE, SENDING, VERMILION, WAITING
from tests.controller.processes import until
from tests.page import hour
from tests.page.elements import button, drawn, rgba, text

FRAMES = """return new Promise((done) => {
    let n = 0;
    (function next() { n++ < 60 ? requestAnimationFrame(next) : done(n) })();
})"""


def test_page_shows_an_hour_of_32_workers_in_bounded_memory(browser: Chrome) -> None:
    with hour.serving() as url:
        browser.get(f"{url}/")
        until(lambda: text(browser, "#in-force") == "BSP", "the page is there")
        button(browser, "1 h").click()
        colours = {rgba(colour) for colour in (COMPUTING, SENDING, WAITING, BLUE, VERMILION, PURPLE)}
        until(lambda: colours <= drawn(browser, "timeline"), "an hour is drawn, with its swaps")
        curve = {rgba(colour) for colour in (GREEN, BLUE, VERMILION, PURPLE)}
        until(lambda: curve <= drawn(browser, "accuracy"), "a curve in the strategies' colours")
        assert len(browser.find_elements("css selector", "#workers tbody tr")) == hour.WORKERS

        def elements() -> int:
            return int(browser.execute_script("return document.getElementsByTagName('*').length"))

        before, heap = elements(), memory(browser)
        for _ in range(5):
            answered = polls(browser)
            until(partial(asked_again, browser, answered + 3), "it asks for what is new")
            assert browser.execute_script(FRAMES) == 61
        assert elements() <= before + 20, "rows are used again"
        assert memory(browser) < heap + 8e6, "bytes"
        assert heap < 60e6, "bytes"
        browser.get("about:blank")  # which does not ask any more


def polls(browser: Chrome) -> int:
    """How many times it has asked."""
    asked = "return performance.getEntriesByType('resource').filter((entry) => entry.name.includes('/v1/live')).length"
    return int(browser.execute_script(asked))


def asked_again(browser: Chrome, before: int) -> bool:
    return polls(browser) > before


def memory(browser: Chrome) -> float:
    """Bytes that live, after garbage has been collected."""
    browser.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    return float(browser.execute_script("return performance.memory.usedJSHeapSize"))
