"""Runs sqlstress on a host for as long as whoever started it lives, and wants it.

The first line of its standard input is what to do, as JSON; the input ends when the measurement is to end,
also because the process that holds the other end was killed. The report goes to the standard output. The turn
on this machine is taken here, so that it lasts as long as the measurement, whoever dies before.
"""

from __future__ import annotations

import _thread
import json
import os
import runpy
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlstress.cluster.turn import Turn
from sqlstress.targets.meeting import INVITATION

GRACE_S = 15.0
"""So long a measurement may take to stop and clean up."""
TURN_S = 0.5
"""How often it is tried to get the turn on this machine."""
PREFIX = "sqlstress-plan-"


def main() -> None:
    """Measure what the first line asks for, when it is our turn."""
    order = json.loads(_line())
    end = _End()
    threading.Thread(target=end.wait, daemon=True).start()
    with TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as own, Turn(order["machine"]) as turn:
        while not (turn.is_ours() or end.is_here.is_set()):
            end.is_here.wait(TURN_S)
        with suppress(KeyboardInterrupt):
            if end.stops_us():
                _measure(order, Path(own))


def _measure(order: dict[str, str], own: Path) -> None:
    plan = own / "plan.toml"
    plan.write_text(order["plan"], encoding="utf-8")
    sys.argv = [
        *("sqlstress", "run", str(plan), "--dir", order["directory"]),
        *("--quiet", "--no-progress", "-o", "json:-"),
    ]
    if order.get("together"):
        os.environ[INVITATION] = order["together"]
    runpy.run_module("sqlstress", run_name="__main__")


def _line() -> bytes:
    """Read up to the first line's end and no further: what comes next is the end."""
    found = bytearray()
    while (piece := os.read(0, 1)) not in (b"", b"\n"):
        found += piece
    return bytes(found)


class _End:
    """The end of the input. It breaks off the measurement, nothing before: what is half made would stay."""

    def __init__(self) -> None:
        self.is_here = threading.Event()
        self._lock, self._stops = threading.Lock(), False

    def stops_us(self) -> bool:
        """From now on the end stops this thread as Ctrl-C does; say whether it is still to come."""
        with self._lock:
            self._stops = not self.is_here.is_set()
            return self._stops

    def wait(self) -> None:
        """Wait for it, and see to it that this process ends."""
        with suppress(OSError):
            while os.read(0, 1):
                pass
        with self._lock:
            self.is_here.set()
            if self._stops:
                _interrupt()
        time.sleep(GRACE_S)
        os._exit(1)


def _interrupt() -> None:
    """Stop the main thread as Ctrl-C does."""
    if sys.platform == "win32":
        _thread.interrupt_main()
    else:
        # To this thread of all: only so a call in which it waits is broken off.
        ident = threading.main_thread().ident
        assert ident
        signal.pthread_kill(ident, signal.SIGINT)


if __name__ == "__main__":
    main()
