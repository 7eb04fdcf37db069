"""The system's Chromium, headless and driven by Playwright, to open our pages.

    python -m tests.browser PAGE.html OUT.png [WIDTH [dark]]

takes a picture of a whole page; OUT.pdf shows the printed page.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Request

NAMES = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HEIGHT = 900


def find_chromium() -> str | None:
    """Return the path of the browser, or None."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """A page, with its errors and its requests."""

    def __init__(self, browser: Browser) -> None:
        self.errors: list[str] = []
        """Errors and warnings of the console, and exceptions."""
        self.requests: list[str] = []
        """Requested addresses, including the page's own."""
        self._page = browser.new_page(viewport={"width": 1280, "height": HEIGHT})
        self._page.on("console", self._record_message)
        self._page.on("pageerror", lambda error: self.errors.append(str(error)))
        self._page.on("request", self._record_request)

    def _record_message(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self.errors.append(message.text)

    def _record_request(self, request: Request) -> None:
        if not request.url.startswith("data:"):  # data of the page itself
            self.requests.append(request.url)

    def close(self) -> None:
        """Close the page and drop its stored data."""
        self._page.context.close()

    def open(self, path: Path, width: int = 1280, *, dark: bool = False) -> None:
        """Open one of our pages, and wait until its plots are drawn."""
        self._page.set_viewport_size({"width": width, "height": HEIGHT})
        self.prefer(dark=dark)
        self._page.goto(path.resolve().as_uri())
        self.ask(
            "new Promise(done => { const look = () => document.documentElement?.dataset.drawn"
            " ? done(true) : setTimeout(look, 20); look(); })"
        )

    def prefer(self, *, dark: bool) -> None:
        """Prefer dark colours, or light ones."""
        self._page.emulate_media(color_scheme="dark" if dark else "light")

    def on_paper(self, *, printed: bool) -> None:
        """Show the page as it is printed, or as on a screen."""
        self._page.emulate_media(media="print" if printed else "screen")

    def point(self, selector: str, number: int = 0) -> None:
        """Move the pointer onto the middle of the n-th element of many."""
        self._page.locator(selector).nth(number).hover()

    def drag(self, selector: str, begin: tuple[float, float], end: tuple[float, float]) -> None:
        """Drag across an element, from and to a share of its width and height."""
        self._page.locator(selector).scroll_into_view_if_needed()
        box = self._page.locator(selector).bounding_box()
        assert box
        (x, y), (width, height) = (box["x"], box["y"]), (box["width"], box["height"])
        self._page.mouse.move(x + begin[0] * width, y + begin[1] * height)
        self._page.mouse.down()
        self._page.mouse.move(x + end[0] * width, y + end[1] * height, steps=3)
        self._page.mouse.up()

    def saved_by(self, selector: str) -> str:
        """Return the text of the file that a click saves."""
        with self._page.expect_download() as found:
            self._page.locator(selector).click()
        return Path(found.value.path()).read_text(encoding="utf-8")

    def click(self, selector: str, times: int = 1) -> None:
        """Click an element."""
        self._page.locator(selector).first.click(click_count=times)

    def ask(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript, awaited."""
        return self._page.evaluate(expression)

    def picture(self) -> bytes:
        """Return the whole page as PNG."""
        return self._page.screenshot(full_page=True)

    def printed(self) -> bytes:
        """Return the page as PDF."""
        return self._page.pdf(print_background=True)


@contextmanager
def running(chromium: str) -> Iterator[Browser]:
    """Yield a browser with a new profile; both are gone afterwards."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def main(source: str, target: str, width: str = "1280", colours: str = "light") -> None:
    """Take a picture of a page, or print it."""
    chromium = find_chromium()
    assert chromium, f"none of {', '.join(NAMES)} is installed"
    with running(chromium) as browser:
        page = Page(browser)
        page.open(Path(source), int(width), dark=colours == "dark")
        Path(target).write_bytes(page.printed() if target.endswith(".pdf") else page.picture())
        sys.stdout.write(f"{page.errors} {page.requests}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
