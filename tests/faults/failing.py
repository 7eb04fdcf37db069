"""sqlstress of which a worker fails: SQLSTRESS_TEST_FAILURE says when and how, such as "window MemoryError".

Usage: python tests/faults/failing.py ARGUMENTS OF SQLSTRESS

Moments: starting, window, reporting. A failure is the name of an exception, or of a signal; those of
POSIX come while reporting in the middle of a long message. It meets worker 2.
"""

from __future__ import annotations

import builtins
import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

VARIABLE = "SQLSTRESS_TEST_FAILURE"
VICTIM = 2
LONG = 1_000_000
"""Characters that no pipe takes at once."""


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
    if failure.startswith("SIG"):
        os.kill(os.getpid(), signal.Signals[failure])
    raise getattr(builtins, failure)("injected" if failure != "MemoryError" else "")


def install(moment: str, failure: str) -> None:
    """Make this worker process fail if it is the victim's."""
    from sqlstress.engine import worker

    named, send = vars(worker)["named"], vars(worker)["send"]

    def opener(target: str) -> Any:
        def opened(case: Any, folder: Any, number: int, *others: Any) -> Any:
            source = named(target)(case, folder, number, *others)
            if number != VICTIM:
                return source
            if moment == "starting":
                fail(failure)
            if moment == "reporting":
                vars(worker)["send"] = sent
            return FailingSource(source, failure) if moment == "window" else source

        return opened

    def sent(pipe: Connection, message: Any) -> None:
        if isinstance(message, worker.Done):
            if not failure.startswith("SIG"):
                fail(failure)
            message.findings.note = "x" * LONG
            setattr(Connection, "_send", half_sent)  # noqa: B010 - mypy minds an assignment
        send(pipe, message)

    written = Connection.__dict__["_send"]
    times: list[int] = []

    def half_sent(self: Connection, data: bytes) -> None:
        if times:
            fail(failure)
        times.append(1)
        written(self, data)

    vars(worker)["named"] = opener


if __name__ == "__main__":
    from sqlstress.__main__ import main
    from tests.brief import make_brief

    make_brief()
    sys.exit(main())
elif __name__ == "__mp_main__":
    install(*os.environ[VARIABLE].split())
