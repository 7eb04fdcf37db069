"""What a worker of the cluster does for us: it measures once, in a process of its own, and returns a report.

Dask would run a task again, go on with it after it was cancelled, and give it its own environment; and a
nanny's worker may have no children of multiprocessing. So the measurement is a process of its own, begun with
a ticket that is there once, and ended when whoever asked says so, or is no longer heard.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

import psutil

from sqlstress.cluster import machine
from sqlstress.cluster.guard import GRACE_S

POLL_S = 2.0
"""How often it is asked whether to go on."""
SILENT_S = 60.0
"""After so long without a pulse of whoever asked, nobody wants the report any more."""
MOST_BYTES = 64 << 20
STOP = -1
"""What the pulse is when all are to stop; else it counts up."""
DONE, STOPPED, SLOW, TWICE, LARGE = "done", "stopped", "slow", "twice", "large"
"""How it ended: with a report; by whoever asked; over its limit; it was measured already; the report is too
large to be sent."""
_DASKS = ("MALLOC_TRIM_THRESHOLD_", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
Answer = tuple[str, int, str, bytes]
"""How it ended, the exit code, the end of what it said, and the report."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whether somebody still wants what is measured here."""

    pulse: Callable[[], int]
    """Asks for the pulse; raises anything where it can't be had."""
    limit_s: float
    clock: Callable[[], float] = time.monotonic


def measure(ticket: str) -> Answer:
    """Measure what the order of `order` asks for that lies under a ticket.

    It lies there, and not in the task, since Dask tells and logs of tasks what they were called with: a plan
    may hold a password.
    """
    from distributed import Queue, Variable

    try:
        asked = json.loads(Queue(ticket).get(timeout=10))
    except TimeoutError:
        return TWICE, 0, "", b""
    variable = Variable(asked["pulse"])
    wanted = Wanted(lambda: int(variable.get(timeout=POLL_S)), asked["limit_s"])
    own = {name: asked[name] for name in ("plan", "directory", "together")}
    return carry_out({**own, "machine": machine.machine()}, wanted)


def carry_out(order: dict[str, Any], wanted: Wanted) -> Answer:
    """Measure in a process of its own."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as complaints:
        return _measured(order, Watch(wanted), out, complaints)


def _measured(order: dict[str, Any], watch: Watch, out: IO[bytes], complaints: IO[bytes]) -> Answer:
    process = _start(out, complaints)
    try:
        assert process.stdin
        with suppress(OSError):  # it has died at once: its exit code and its complaint say why
            process.stdin.write(json.dumps(order).encode() + b"\n")
            process.stdin.flush()
        why = ""
        while process.poll() is None and not (why := watch.why_stop()):
            with suppress(subprocess.TimeoutExpired):
                process.wait(POLL_S)
    finally:
        _end(process)
    said = _tail(complaints)
    if why:
        return why, process.returncode, said, b""
    report = _whole(out)
    return (
        (LARGE, process.returncode, said, b"") if report is None else (DONE, process.returncode, said, report)
    )


class Watch:
    """Watches the pulse of whoever asked."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._begun = self._heard = wanted.clock()
        self._last: int | None = None

    def why_stop(self) -> str:
        """Return STOPPED or SLOW when it is time to stop; "" while it is not."""
        now = self._wanted.clock()
        try:
            pulse: int | None = self._wanted.pulse()
        except Exception:  # whatever a connection that is lost may raise: it is silence
            pulse = self._last
        if pulse == STOP or now - self._heard > SILENT_S:
            return STOPPED
        if pulse != self._last:
            self._last, self._heard = pulse, now
        return SLOW if now - self._begun > self._wanted.limit_s else ""


def clean_environment(given: dict[str, str]) -> dict[str, str]:
    """Return the environment without what Dask has put there for its workers."""
    return {
        name: value for name, value in given.items() if name not in _DASKS and not name.startswith("DASK_")
    }


def _start(out: IO[bytes], complaints: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the guard of a measurement, in a group of its own: no signal to the worker reaches it."""
    own_group: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        own_group = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return subprocess.Popen(
        [sys.executable, "-m", "sqlstress.cluster.guard"],
        stdin=subprocess.PIPE, stdout=out, stderr=complaints, env=clean_environment(dict(os.environ)),
        **own_group,
    )  # fmt: skip


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a measurement if it still runs: its input ends, and if that is not enough, all is killed."""
    assert process.stdin
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(GRACE_S + POLL_S)
    except subprocess.TimeoutExpired:
        _kill(process)
        process.wait()


def _kill(process: subprocess.Popen[bytes]) -> None:
    if sys.platform != "win32":
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        return
    with suppress(psutil.Error):
        own = psutil.Process(process.pid)
        for one in (*own.children(recursive=True), own):
            with suppress(psutil.Error):
                one.kill()


def _tail(complaints: IO[bytes]) -> str:
    """Return the first of what was said, as much as stands in a line or two."""
    complaints.seek(0)
    return " ".join(complaints.read(600).decode("utf-8", "replace").split())


def _whole(out: IO[bytes]) -> bytes | None:
    """Return a report; None of one that is larger than is sent."""
    out.seek(0)
    report = out.read(MOST_BYTES + 1)
    return report if len(report) <= MOST_BYTES else None


def order(asked: Any, pulse: str, together: str = "") -> str:
    """Return, as JSON, what `measure` is to do; `together`: the invitation to load a server with others."""
    return json.dumps(
        {
            "plan": asked.plan,
            "directory": asked.directory,
            "limit_s": asked.limit_s,
            "pulse": pulse,
            "together": together,
        }
    )
