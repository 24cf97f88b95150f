"""Helpers that read the page in the browser."""

from __future__ import annotations

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from tests.controller.processes import until

PATIENCE_S = 120


def text(page: Chrome, selector: str) -> str:
    return str(page.execute_script(f"return document.querySelector({selector!r})?.textContent ?? ''"))


def until_text(page: Chrome, selector: str, part: str) -> str:
    """Waits until the element contains the text, and returns its whole text."""
    return until(
        lambda: found if part in (found := text(page, selector)) else None,
        f"{selector} says {part!r}; its text is {text(page, selector)!r}",
        PATIENCE_S,
    )


def button(page: Chrome, name: str) -> WebElement:
    """Once there is one that can be used."""
    path = f"//button[normalize-space()={name!r} or @aria-label={name!r}]"

    def usable() -> WebElement | None:
        return next(
            (one for one in page.find_elements(By.XPATH, path) if one.is_displayed() and one.is_enabled()), None
        )

    return until(usable, f"a button {name}", PATIENCE_S)


def drawn(page: Chrome, canvas: str) -> set[tuple[int, ...]]:
    """The colours in a drawing."""
    script = f"""
        const canvas = document.getElementById({canvas!r});
        const image = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return [...new Set(new Uint32Array(image.data.buffer))];
    """
    return {tuple(int(colour).to_bytes(4, "little")) for colour in page.execute_script(script)}


def rgba(colour: str) -> tuple[int, ...]:
    return (*bytes.fromhex(colour.removeprefix("#")), 255)
