"""The controller's page in a real browser, with real workers behind a real switch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path

import pytest
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By

from serene.palette import COMPUTING, WAITING, look
from serene.strategy import ASP, BSP, SSP, Mixed
from tests.controller.processes import ControllerProcess, Process, SwitchProcess, until
from tests.page.conftest import show_as
from tests.page.elements import PATIENCE_S, button, drawn, rgba, text, until_text
from tests.support.warm import warm_python

WORKERS = 2
PLAIN = """
    const seen = [...document.querySelectorAll("h2, h3, p, td, th, button, summary, label, li, small")];
    const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const behind = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const colour = parts(getComputedStyle(at).backgroundColor);
            if (colour.length < 4 || colour[3] > 0) return colour;
        }
        return [255, 255, 255];
    };
    const light = (rgb) => rgb.slice(0, 3).map((v) => v / 255)
        .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const poor = [];
    for (const element of seen) {
        if (!element.textContent.trim() || !element.checkVisibility() || element.disabled) continue;
        const [a, b] = [light(parts(getComputedStyle(element).color)), light(behind(element))];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < 4.5) poor.push(`${element.outerHTML.slice(0, 80)} ${contrast}`);
    }
    return poor;
"""


@pytest.fixture
def page(browser: Chrome, controller: ControllerProcess) -> Iterator[Chrome]:
    browser.get(f"{controller.url}/")
    yield browser
    for job in controller.client.jobs():
        controller.client.delete_job(job.job)


@contextmanager
def training(switch: SwitchProcess, folder: Path) -> Iterator[None]:
    """Workers of job 0, which the test makes; the second one is slow."""
    with ExitStack() as stack:
        for worker in range(WORKERS):
            ports = f"{switch.peer_udp_ports[worker + 1]}:{switch.udp_ports[worker + 1]}"
            arguments = f"--worker {worker} --workers {WORKERS} --frame-udp {ports} --steps 100000 "
            arguments += f"--compute-ms {40 + 400 * worker}"
            command = [warm_python(), "-m", "serene.workers.train", *arguments.split()]
            stack.callback(Process(command, folder / f"worker-{worker}.log").kill)
        yield


def counter(page: Chrome, name: str) -> int:
    return int(text(page, f'[data-counter="{name}"] td:nth-child(2)').replace(",", "") or 0)


def test_page_follows_a_job_from_start_through_two_swaps(
    page: Chrome, controller: ControllerProcess, switch: SwitchProcess, tmp_path: Path
) -> None:
    until_text(page, "#nothing h2", "No job yet")
    page.find_element(By.CSS_SELECTOR, "#new-job summary").click()
    field = page.find_element(By.NAME, "workers")
    field.clear()
    field.send_keys(str(WORKERS))
    button(page, "Create").click()
    until_text(page, "#headline", "aits for workers 0 and 1 to join")

    with training(switch, tmp_path):
        until_text(page, "#headline", "mostly for worker 1")
        until_text(page, "#waits", "Worker 0 waits in round")
        until(lambda: {rgba(COMPUTING), rgba(WAITING)} <= drawn(page, "timeline"), "work and waiting are drawn")
        before = counter(page, "releases")
        until(lambda: counter(page, "releases") > before, "the switch's counters move")

        button(page, "ASP").click()
        until_text(page, "#notice", "BSP → ASP, epoch 2")
        assert controller.client.job(0).strategy == ASP()
        until_text(page, "#in-force", "ASP")
        until_text(page, "#events", "job 0: BSP -> ASP, epoch 2")
        until(lambda: rgba(look("asp").colour) in drawn(page, "timeline"), "the swap is marked in ASP's colour")
        answers = counter(page, "answers")
        until(lambda: counter(page, "answers") > answers, "the switch answers at once")
        until_text(page, "#headline", "Nobody waits")

        button(page, "Evict worker 1").click()
        until_text(page, "#notice", "worker 1 is evicted")
        assert controller.client.job(0).workers[1].state == "evicted"
        button(page, "Readmit worker 1").click()
        until(lambda: controller.client.job(0).workers[1].state == "running", "it is a member again")


def test_page_forms_check_input_and_swap(page: Chrome, controller: ControllerProcess, switch: SwitchProcess) -> None:
    controller.client.create_job(3, BSP())
    until_text(page, "#in-force", "BSP")
    page.find_element(By.CSS_SELECTOR, "#choose summary").click()
    name = page.find_element(By.CSS_SELECTOR, "#other select")
    name.send_keys("ssp")
    staleness = page.find_element(By.NAME, "staleness")
    staleness.clear()
    button(page, "Swap").click()
    until_text(page, "#notice", "staleness: expected a number")
    assert controller.client.job(0).strategy == BSP()
    staleness.send_keys("2")
    name.send_keys("mixed")
    form = page.find_element(By.ID, "other")
    assert "asynchronous workers" in form.text and "mixed: some asynchronous" in form.text
    page.find_element(By.NAME, "async_workers").send_keys("0,x")
    button(page, "Swap").click()
    until_text(page, "#notice", "asynchronous workers: expected worker ids, for example 3,5")
    page.find_element(By.NAME, "async_workers").send_keys(Keys.BACKSPACE, "2")
    button(page, "Swap").click()
    until_text(page, "#notice", "BSP → Mixed(asynchronous 0, 2, staleness 2), when the job starts")
    assert controller.client.job(0).strategy == Mixed((0, 2), 2)

    button(page, "Start").click()
    until_text(page, "#notice", "automatic strategy pacing is on")
    button(page, "ASP").click()
    until_text(page, "#notice", "→ ASP, when the job starts; automatic strategy pacing is off")
    page.find_element(By.NAME, "automatic-name").send_keys("dssp")
    button(page, "Start").click()
    until_text(page, "#notice", "automatic strategy dssp is on")
    assert controller.client.job(0).automatic is not None
    until_text(page, "#decides", "automatic strategy dssp: 0 decisions")
    button(page, "Turn off").click()
    until(lambda: controller.client.job(0).automatic is None, "the user decides again")
    low = page.find_element(By.NAME, "low")
    low.clear()
    button(page, "Start").click()
    until_text(page, "#notice", "low: expected a number")
    assert controller.client.job(0).automatic is None
    low.send_keys("12")
    high = page.find_element(By.NAME, "high")
    high.clear()
    high.send_keys("3")
    button(page, "Start").click()
    until_text(page, "#notice", "dssp: low 12: expected 0 to 3")


def test_page_shows_the_precision_of_a_pool(page: Chrome, controller: ControllerProcess) -> None:
    controller.client.create_job(2, BSP(), pool_slots=2, precision=8)
    until_text(page, "#in-force", "BSP in 8 bits")


def test_page_shows_error_for_an_invalid_job(page: Chrome, controller: ControllerProcess) -> None:
    page.find_element(By.CSS_SELECTOR, "#new-job summary").click()
    workers = page.find_element(By.CSS_SELECTOR, "#new-job-form [name=workers]")
    workers.clear()
    workers.send_keys("40")
    button(page, "Create").click()
    until_text(page, "#notice", "a job of 40 workers: expected 1 to 32")
    assert controller.client.jobs() == []


def test_page_has_no_data_of_a_worker_before_it_began(page: Chrome) -> None:
    """Otherwise a new worker's share of waiting would include seconds before it existed."""
    script = """
        const [done] = arguments;
        import("/page/store.js").then(({ JobRecord }) => {
          const worker = new JobRecord(0).worker(3);
          const hear = (first, waiting) => {
            const nothing = waiting.map(() => 0);
            worker.hear({ turns: [], first, computing: nothing, sending: nothing, waiting, loss: [], accuracy: [] });
          };
          hear(1000, [100]);
          hear(1001, [100, 50]);
          done([999, 1000, 1001, 1002, 1003].map((bin) => worker.has(bin)));
        });
    """
    assert page.execute_async_script(script) == [False, True, True, True, False]


def test_page_is_usable_by_keyboard_alone(page: Chrome, controller: ControllerProcess) -> None:
    controller.client.create_job(2, BSP())
    until_text(page, "#in-force", "BSP")

    def focused() -> str:
        return str(page.execute_script("return document.activeElement.textContent"))

    for _ in range(30):
        ActionChains(page).send_keys(Keys.TAB).perform()
        assert page.execute_script("return getComputedStyle(document.activeElement).outlineWidth") == "3px"
        if focused() == "SSP(3)":
            break
    assert focused() == "SSP(3)"
    ActionChains(page).send_keys(Keys.ENTER).perform()
    until(lambda: controller.client.job(0).strategy == SSP(3), "the swap")
    until(
        lambda: page.switch_to.active_element.get_attribute("aria-pressed") == "true",
        "it is pressed, and has the focus",
    )


def test_page_is_legible_at_each_width_and_colour_scheme(
    page: Chrome, controller: ControllerProcess, switch: SwitchProcess, tmp_path: Path
) -> None:
    """On a phone and on a desktop, in light and in dark colours."""
    controller.client.create_job(WORKERS, BSP())
    with training(switch, tmp_path):
        for width, scheme in product((360, 1300), ("light", "dark")):
            show_as(page, width, scheme)
            until_text(page, "#waits", "Worker 0 waits in round")
            assert page.execute_script(PLAIN) == [], (width, scheme)
            wide, there = page.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
            assert wide <= there == width, "nothing sticks out"


def test_page_loads_nothing_from_other_origins(page: Chrome, controller: ControllerProcess) -> None:
    until_text(page, "#switch-text", "switch 127.0.0.1")
    loaded = page.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert len(loaded) > 10
    assert [name for name in loaded if not name.startswith(f"{controller.url}/")] == []


def test_page_reports_its_own_defect_not_a_dead_controller(chromium: Chrome, controller: ControllerProcess) -> None:
    chromium.get(f"{controller.url}/")
    until_text(chromium, "#switch-text", "switch 127.0.0.1")
    chromium.execute_script("document.getElementById('switch').remove()")
    text = until_text(chromium, "#trouble", "This page has a defect")
    assert "null" in text and "does not answer" not in text
    assert chromium.find_element(By.ID, "trouble").is_displayed()
    chromium.get("about:blank")


def test_page_reconnects_to_a_restarted_controller(chromium: Chrome, tmp_path: Path) -> None:
    """It has a switch of its own, so that other tests keep theirs."""
    switch = SwitchProcess("embedded", tmp_path / "switch.log")
    try:
        first = ControllerProcess(switch, tmp_path / "first.log")
        http = first.url.removeprefix("http://")
        chromium.get(f"{first.url}/")
        until_text(chromium, "#switch-text", "switch 127.0.0.1")
        assert first.stop() == 0
        until_text(chromium, "#trouble", "The controller does not answer; this page shows the state of")
        second = ControllerProcess(switch, tmp_path / "second.log", http=http)
        try:
            until(
                lambda: text(chromium, "#switch") and not chromium.find_element(By.ID, "trouble").is_displayed(),
                "it is back",
                PATIENCE_S,
            )
        finally:
            chromium.get("about:blank")
            assert second.stop() == 0
    finally:
        switch.stop()
