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

GRACE_S = 15.0
"""So long a measurement may take to stop and clean up."""
TURN_S = 0.5
"""How often it is tried to get the turn on this machine."""
PREFIX = "sqlstress-plan-"


def main() -> None:
    """Measure what the first line asks for, when it is our turn."""
    order = json.loads(_line())
    with suppress(KeyboardInterrupt):
        threading.Thread(target=_stop_at_end, daemon=True).start()
        with Turn(order["machine"]) as turn:
            while not turn.is_ours():
                time.sleep(TURN_S)
            _measure(order)


def _measure(order: dict[str, str]) -> None:
    with TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as own:
        plan = Path(own) / "plan.toml"
        plan.write_text(order["plan"], encoding="utf-8")
        sys.argv = [
            *("sqlstress", "run", str(plan), "--dir", order["directory"]),
            *("--quiet", "--no-progress", "-o", "json:-"),
        ]
        runpy.run_module("sqlstress", run_name="__main__")


def _line() -> bytes:
    """Read up to the first line's end and no further: what comes next is the end."""
    found = bytearray()
    while (piece := os.read(0, 1)) not in (b"", b"\n"):
        found += piece
    return bytes(found)


def _stop_at_end() -> None:
    """Wait for the end of the input, and stop as at Ctrl-C."""
    with suppress(OSError):
        while os.read(0, 1):
            pass
    if sys.platform == "win32":
        _thread.interrupt_main()
    else:
        # To this thread of all: only so a call in which it waits is broken off.
        ident = threading.main_thread().ident
        assert ident
        signal.pthread_kill(ident, signal.SIGINT)
    time.sleep(GRACE_S)
    os._exit(1)


if __name__ == "__main__":
    main()
