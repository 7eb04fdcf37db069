"""A headless Chromium that opens one page, driven over a pipe: Chrome DevTools Protocol, no package needed.

    python -m tests.browser PAGE.html OUT.png [WIDTH [dark]]

takes a picture of a whole page.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
TIMEOUT_S = 60
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def find_chromium() -> str | None:
    """Return the browser to test with; None where there is none, or no pipe to drive it."""
    if sys.platform == "win32":
        return None
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """A page, and everything that it complained of or asked for."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = os.fdopen(read, "rb", 0), os.fdopen(write, "wb", 0)
        self._buffer = b""
        self._sent = 0
        self._session: str | None = None
        self.errors: list[str] = []
        """Errors and warnings of the console, and exceptions."""
        self.requests: list[str] = []
        """Addresses that were asked for, that of the page among them."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """End the browser."""
        self._session = None
        self.call("Browser.close")
        self._read.close()
        self._write.close()

    def call(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol; return its result."""
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._write.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._sent:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            chunk = self._read.read(1 << 16)
            assert chunk, "the browser has ended"
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        self._take_down(message.get("method"), message.get("params", {}))
        return message

    def _take_down(self, event: str | None, told: dict[str, Any]) -> None:
        match event:
            case "Runtime.exceptionThrown":
                self.errors.append(str(told["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if told["type"] in ("error", "warning", "assert"):
                self.errors.append(str(told["args"]))
            case "Log.entryAdded" if told["entry"]["level"] in ("error", "warning"):
                self.errors.append(told["entry"]["text"])
            case "Network.requestWillBeSent":
                address = told["request"]["url"]
                if not address.startswith("data:"):  # the page itself holds what is asked for
                    self.requests.append(address)

    def open(self, path: Path, width: int = 1280, *, dark: bool = False) -> None:
        """Open a page of ours, and wait until its plots are drawn."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        self.prefer(dark=dark)
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.ask(
            "new Promise(done => { const look = () => document.documentElement?.dataset.drawn"
            " ? done(true) : setTimeout(look, 20); look(); })"
        )

    def prefer(self, *, dark: bool) -> None:
        """Prefer dark colours, or light ones."""
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="", features=[feature])

    def ask(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript, awaited."""
        told = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def picture(self) -> bytes:
        """Return the whole page as PNG."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(shot["data"])

    def printed(self) -> bytes:
        """Return the page as PDF."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])


@contextmanager
def browser(chromium: str) -> Iterator[Page]:
    """Yield a page of a browser that is ended afterwards."""
    assert sys.platform != "win32"
    command_read, command_write = os.pipe()
    answer_read, answer_write = os.pipe()
    profile = tempfile.mkdtemp()

    def place() -> None:  # the protocol reads from 3 and writes to 4
        os.dup2(command_read, 63)
        os.dup2(answer_write, 64)
        os.dup2(63, 3)
        os.dup2(64, 4)

    process = subprocess.Popen(
        [chromium, *FLAGS, f"--user-data-dir={profile}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=place,
        close_fds=True,
        pass_fds=(3, 4),
    )
    os.close(command_read)
    os.close(answer_write)
    try:
        page = Page(answer_read, command_write)
        yield page
        page.close()
        process.wait(TIMEOUT_S)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(profile, ignore_errors=True)


if __name__ == "__main__":
    chromium = find_chromium()
    assert chromium, f"none of {', '.join(NAMES)} is installed"
    source, target, *more = sys.argv[1:]
    with browser(chromium) as opened:
        opened.open(Path(source), int(more[0]) if more else 1280, dark="dark" in more)
        Path(target).write_bytes(opened.printed() if target.endswith(".pdf") else opened.picture())
        sys.stdout.write(f"{opened.errors} {opened.requests}\n")
