"""Debian's Chromium, controlled through its own driver. It connects only to the addresses that a test gives it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from tests.controller.processes import ControllerProcess, SwitchProcess, embedded_switch
from tests.ports import some_port

CHROMIUM, DRIVER = "chromium", "chromedriver"
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --enable-precise-memory-info "
    "--window-size=1300,1000"
)
SCRIPT_TIMEOUT_S = 300

Open = Callable[[str], Chrome]


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    found = {name: shutil.which(name) for name in (CHROMIUM, DRIVER)}
    if None in found.values():
        pytest.skip("needs a browser: apt-get install chromium chromium-driver, or scripts/setup --browser")
    options = ChromeOptions()
    options.binary_location = str(found[CHROMIUM])
    for option in [*OPTIONS.split(), f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"]:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=Service(found[DRIVER], port=some_port()))
    driver.set_script_timeout(SCRIPT_TIMEOUT_S)
    yield driver
    driver.quit()


@pytest.fixture
def browser(chromium: Chrome) -> Iterator[Chrome]:
    """The browser in a desktop window with light colours. Fails the test if the page has logged an error."""
    show_as(chromium, 1300, "light")
    _logged(chromium)
    yield chromium
    logged = _logged(chromium)  # "network": an answer that was an error, which the page shows
    wrong = [entry["message"] for entry in logged if entry["level"] == "SEVERE" and entry["source"] != "network"]
    chromium.get("about:blank")
    assert wrong == []


def _logged(browser: Chrome) -> list[dict[str, str]]:
    """What the browser's console has logged since the last call."""
    return list(browser.get_log("browser"))  # type: ignore[no-untyped-call]


def show_as(browser: Chrome, width: int, scheme: str) -> None:
    """Sets the window's width in CSS pixels, and the colour scheme that the user prefers: light or dark."""
    size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme_wanted = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme_wanted)


@pytest.fixture(scope="module")
def switch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SwitchProcess]:
    yield from embedded_switch(tmp_path_factory.mktemp("switch") / "switch.log")


@pytest.fixture(scope="module")
def controller(switch: SwitchProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerProcess]:
    process = ControllerProcess(switch, tmp_path_factory.mktemp("controller") / "controller.log")
    yield process
    assert process.stop() == 0
    assert "Traceback" not in process.log.read_text(), process.log.read_text()[-4000:]
