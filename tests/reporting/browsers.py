"""Where is a browser to test pages in? Chromium, as Debian and others have it; `.ci/run` installs it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def browser_path() -> str:
    """Return the browser's path; without one the test is skipped, and says what to install."""
    found = os.environ.get("BETIMES_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("there is no Chromium here: apt-get install chromium, or name one in BETIMES_BROWSER")
    return found


@contextmanager
def opened_page(address: str, *, wide: int = 1300, high: int = 1800) -> Iterator[tuple[Page, list[str]]]:
    """Open a page in a browser; give it, and what goes wrong in it as it happens."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        try:
            page = browser.new_page(viewport={"width": wide, "height": high})
            wrong: list[str] = []
            page.on(
                "console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None
            )
            page.on("pageerror", lambda error: wrong.append(str(error)))
            page.on("requestfailed", lambda request: wrong.append(f"failed: {request.url}"))
            page.on(
                "request", lambda request: wrong.append(request.url) if _is_elsewhere(request.url) else None
            )
            page.goto(address)
            yield page, wrong
        finally:
            browser.close()


def _is_elsewhere(url: str) -> bool:
    return not url.startswith(("http://127.0.0.1", "ws://127.0.0.1", "data:", "blob:", "file:"))
