"""A real browser for tests of pages, where one is installed."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
OPTIONS += ["--disable-component-update", "--disable-sync", "--use-fake-device-for-media-stream"]
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no browser is installed (chromium or google-chrome)")


@contextmanager
def open_browser() -> Iterator[Any]:
    """A browser without a window; the test is skipped where playwright is not installed."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=OPTIONS)
        yield browser
        browser.close()
