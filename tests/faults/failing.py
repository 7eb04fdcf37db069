"""sqlstress with a failing worker: SQLSTRESS_TEST_FAILURE is the moment and the failure, such as "window
MemoryError".

Usage: python tests/faults/failing.py ARGUMENTS OF SQLSTRESS

Moments: starting, window, reporting. A failure is the name of an exception, or of a signal; POSIX signals
while reporting come in the middle of a long message. Worker 2 fails.
"""

import builtins
import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

VARIABLE = "SQLSTRESS_TEST_FAILURE"
VICTIM = 2
LONG = 1_000_000
"""Number of characters that no pipe takes at once."""


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
    """Raise the exception, or send the signal, of this name."""
    if failure.startswith("SIG"):
        os.kill(os.getpid(), signal.Signals[failure])
    raise getattr(builtins, failure)("injected" if failure != "MemoryError" else "")


def opened(case: Any, place: Any, number: int, *others: Any) -> Any:
    """Open a worker's half; that of worker 2 fails."""
    from sqlstress.engine import worker
    from sqlstress.experiment import experiment_of

    source = experiment_of(case).worker_half()(case, place, number, *others)
    if number != VICTIM:
        return source
    moment, failure = os.environ[VARIABLE].split()
    if moment == "starting":
        fail(failure)
    if moment == "reporting":
        fail_at_sending(vars(worker), failure)
    if moment == "window":
        if case.spec.loop == "python":
            return FailingSource(source, failure)
        source.run = lambda *_: fail(failure)
    return source


def fail_at_sending(worker: dict[str, Any], failure: str) -> None:
    """Fail when the results are about to be sent; a POSIX signal comes in the middle of them."""
    send, written = worker["send"], Connection.__dict__["_send"]
    times: list[int] = []

    def sent(pipe: Connection, message: Any) -> None:
        if isinstance(message, worker["Done"]):
            if not failure.startswith("SIG"):
                fail(failure)
            message.findings.note = "x" * LONG
            setattr(Connection, "_send", half_sent)  # noqa: B010 - mypy minds an assignment
        send(pipe, message)

    def half_sent(self: Connection, data: bytes) -> None:
        if times:
            fail(failure)
        times.append(1)
        written(self, data)

    worker["send"] = sent


def install() -> None:
    """Let this process's workers be opened by `opened`. They get the failure by the environment alone."""
    from sqlstress.engine import pool
    from sqlstress.engine.worker import Job
    from tests.faults.failing import opened as opened_here  # workers cannot import from __main__

    def failing(_: Any, *others: Any) -> Job:
        return Job(opened_here, *others)

    vars(pool)["Job"] = failing


if __name__ == "__main__":
    from sqlstress.__main__ import main
    from tests.brief import make_brief

    make_brief()
    install()
    sys.exit(main())
