"""sqlstress of which a worker fails: SQLSTRESS_TEST_FAILURE says when and how, such as "window MemoryError".

Usage: python tests/faults/failing.py ARGUMENTS OF SQLSTRESS

Moments: starting, window, reporting. A failure is the name of an exception, or "death": SIGKILL, while
reporting in the middle of the message. It meets worker 2.
"""

from __future__ import annotations

import builtins
import os
import signal
import struct
import sys
from multiprocessing.connection import Connection
from typing import Any

VARIABLE = "SQLSTRESS_TEST_FAILURE"
VICTIM = 2


class FailingSource:
    """A worker's source that fails when the timed loop has begun."""

    def __init__(self, source: Any, failure: str) -> None:
        self._source, self._failure = source, failure

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def next_chunk(self, size: int) -> Any:
        """Fail."""
        fail(self._failure)


def fail(failure: str) -> None:
    """Fail in the way of that name."""
    if failure == "death":
        os.kill(os.getpid(), signal.Signals["SIGKILL"])
    raise getattr(builtins, failure)("injected" if failure != "MemoryError" else "")


def install(moment: str, failure: str) -> None:
    """Make this worker process fail if it is the victim's."""
    from sqlstress.engine import worker

    open_source, send = vars(worker)["open_source"], Connection.send

    def opened(case: Any, folder: Any, number: int, *others: Any) -> Any:
        source = open_source(case, folder, number, *others)
        if number != VICTIM:
            return source
        if moment == "starting":
            fail(failure)
        if moment == "reporting":
            setattr(Connection, "send", sent)  # noqa: B010 - mypy minds an assignment
        return FailingSource(source, failure) if moment == "window" else source

    def sent(self: Connection, message: object) -> None:
        if isinstance(message, worker.Done):
            if failure == "death":
                os.write(self.fileno(), struct.pack("!i", 1000) + b"half of it")
            fail(failure)
        send(self, message)

    vars(worker)["open_source"] = opened


if __name__ == "__main__":
    from sqlstress.__main__ import main

    sys.exit(main())
elif __name__ == "__mp_main__":
    install(*os.environ[VARIABLE].split())
