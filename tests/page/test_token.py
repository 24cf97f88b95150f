"""The page of a controller with a token: it asks for the token once, and a cookie replaces it afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from http.cookies import SimpleCookie

import httpx
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from serene.http import TOKEN
from serene.strategy import ASP, BSP
from tests.controller.processes import ControllerProcess, until
from tests.page.elements import button, until_text

SECRET = "0123456789abcdef-secret"


@pytest.fixture(scope="module")
def controller(switch: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerProcess]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(TOKEN, SECRET)
        log = tmp_path_factory.mktemp("controller") / "controller.log"
        process = ControllerProcess(switch, log)  # type: ignore[arg-type]
        yield process
        assert process.stop() == 0


@pytest.fixture
def http(controller: ControllerProcess) -> Iterator[httpx.Client]:
    """Without the token."""
    with httpx.Client(base_url=controller.url, trust_env=False, timeout=120.0) as plain:
        yield plain


def test_page_asks_for_the_token_once(browser: Chrome, controller: ControllerProcess) -> None:
    controller.client.create_job(2, BSP())
    browser.get(f"{controller.url}/")
    field = browser.find_element(By.NAME, "token")
    until(field.is_displayed, "it asks for the token")
    field.send_keys("not the right one at all")
    button(browser, "Enter").click()
    until_text(browser, "#notice", "wrong token: set SERENE_TOKEN to the controller's token")
    field.clear()
    field.send_keys(SECRET)
    button(browser, "Enter").click()
    until_text(browser, "#in-force", "BSP")
    browser.get(f"{controller.url}/")
    until_text(browser, "#in-force", "BSP")
    button(browser, "ASP").click()
    until(lambda: controller.client.job(0).strategy == ASP(), "the swap")
    assert SECRET not in str(browser.get_cookies()) and browser.execute_script("return document.cookie") == ""
    controller.client.delete_job(0)


def test_page_files_are_public_and_data_needs_a_token(http: httpx.Client) -> None:
    for path in ("/", "/page/main.js"):
        assert http.get(path).status_code == 200
    for method, path in (("GET", "/v1/live"), ("GET", "/page/../v1/live"), ("POST", "/"), ("POST", "/v1/session")):
        assert http.request(method, path).status_code == 401, path


def test_session_cookie_is_safe_and_replaces_the_token(http: httpx.Client) -> None:
    bearer = {"Authorization": f"Bearer {SECRET}"}
    header = http.post("/v1/session", headers=bearer).headers["set-cookie"]
    (cookie,) = SimpleCookie(header).values()
    assert cookie["httponly"] and cookie["samesite"] == "strict" and not cookie["max-age"]
    assert SECRET not in header
    http.cookies.clear()
    own = {"Cookie": f"{cookie.key}={cookie.value}"}
    assert http.get("/v1/live", headers=own).status_code == 200
    for wrong in (f"{cookie.key}={cookie.value[:-1]}", f"{cookie.key}=", f"other={cookie.value}", f"{cookie.key}=\xff"):
        assert http.get("/v1/live", headers={b"Cookie": wrong.encode("latin-1")}).status_code == 401
    for strange in ({"Origin": "http://127.0.0.1:1"}, {"Sec-Fetch-Site": "same-site"}, {"Host": "evil.example"}):
        assert http.put("/v1/jobs/0/strategy", headers={**own, **strange}, json={"name": "asp"}).status_code == 403
