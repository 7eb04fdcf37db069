"""The host's half of a fleet: it measures a plan in a separate process and returns the report.

Dask would repeat a task, continue it after a cancellation and run it in its own environment, and a worker of
a nanny may have no children of multiprocessing. So a task starts a guard: this module, as a program.
"""

from __future__ import annotations

import _thread
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

from sqlstress.errors import EnvironmentFailure
from sqlstress.system.files import lock

GRACE_S = 15.0
"""Maximum time in which a stopped measurement cleans up."""
TURN_S = 0.5
POLL_S = 2.0
"""Time between two readings of the heartbeat."""
SILENT_S = 60.0
"""Time without a new heartbeat after which a task stops."""
STOP = -1
"""Heartbeat that stops all tasks."""
_DASKS = ("MALLOC_TRIM_THRESHOLD_", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def identity() -> tuple[str, str]:
    """Return the name of this host, and its machine."""
    return host_name(), machine()


def host_name() -> str:
    return socket.gethostname()


def machine() -> str:
    """Return a text that identifies the physical machine: its containers have different host names."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{host_name()} {uuid.getnode():x}"


class Turn:
    """Lock of a machine, so that fleets measure there in turns. The lock ends with its process."""

    def __init__(self, machine: str, folder: Path | None = None) -> None:
        digest = sha256(machine.encode()).hexdigest()[:16]
        self.path = (folder or Path(tempfile.gettempdir())) / f"sqlstress-fleet-{digest}.lock"
        self._file: IO[bytes] | None = None

    def take(self) -> bool:
        """Take the turn if it is free; return whether this process has it."""
        if self._file is not None:
            return True
        flags = os.O_RDONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            file = os.fdopen(os.open(self.path, flags, 0o666), "rb")
        except OSError:
            return False  # another user's file
        with suppress(OSError):
            lock(file)
            # The previous owner may have removed the file that we have opened.
            if os.path.samestat(os.fstat(file.fileno()), self.path.stat()):
                self._file = file
                return True
        file.close()
        return False

    def close(self) -> None:
        if self._file is None:
            return
        # An unlocked file may be another process's, so it is removed first. Windows removes no open file.
        steps = (self.path.unlink, self._file.close)
        for step in steps if sys.platform != "win32" else reversed(steps):
            with suppress(OSError):
                step()
        self._file = None


def main() -> None:
    """Measure the plan of the order in the first line of standard input, until the input ends.

    The input also ends if the worker is killed. The report goes to standard output. The guard takes the turn,
    so that the turn lasts as long as the measurement.
    """
    line = bytearray()
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        line += byte
    order = json.loads(line)
    ended, measuring = threading.Event(), threading.Event()
    threading.Thread(target=_stop_at_end, args=(ended, measuring), daemon=True).start()
    with (
        tempfile.TemporaryDirectory(prefix="sqlstress-plan-", ignore_cleanup_errors=True) as folder,
        closing(Turn(order["machine"])) as turn,
    ):
        while not turn.take():
            if ended.wait(TURN_S):
                return
        plan = Path(folder) / "plan.toml"
        plan.write_text(order["plan"], encoding="utf-8")
        sys.argv = [
            *("sqlstress", "run", str(plan), "--dir", order["directory"]),
            *("--quiet", "--no-progress", "--keep-going", "-o", "json:-"),
        ]
        with suppress(KeyboardInterrupt):
            measuring.set()
            runpy.run_module("sqlstress", run_name="__main__")


def _stop_at_end(ended: threading.Event, measuring: threading.Event) -> None:
    """Stop the measurement at the end of the input, first as Ctrl-C does."""
    with suppress(OSError):
        while os.read(0, 1):
            pass
    ended.set()
    measuring.wait()  # an earlier interrupt would leave files behind
    if sys.platform == "win32":
        _thread.interrupt_main()
    else:
        # A signal to the main thread also interrupts a call in which it waits.
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    time.sleep(GRACE_S)
    os._exit(1)


def measure(ticket: str) -> tuple[int, str, bytes]:
    """Measure the plan of a ticket; return the exit code, the complaint and the report.

    The plan is not an argument, because Dask logs arguments and a plan may hold a password. Raises
    EnvironmentFailure without a report.
    """
    from distributed import Queue, Variable

    try:
        order = {**json.loads(Queue(ticket).get(timeout=10)), "machine": machine()}
    except TimeoutError:
        raise EnvironmentFailure("Dask repeated its task; the plan was not run twice") from None
    heartbeat = Variable(order["run"])
    watch = Watch(lambda: int(heartbeat.get(timeout=POLL_S)), order["limit_s"])
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        code = _run_guard(order, watch, out, err)
        out.seek(0)
        err.seek(0)
        report, complaint = out.read(), " ".join(err.read(600).decode("utf-8", "replace").split())
    if not report.strip():
        raise EnvironmentFailure(f"it ended with exit code {code} and no report: {complaint or 'no message'}")
    return code, complaint, report


def _run_guard(order: dict[str, Any], watch: Watch, out: IO[bytes], err: IO[bytes]) -> int:
    """Run a guard to its end; return its exit code. Raises EnvironmentFailure if it has to stop."""
    # In a separate group, no signal to the worker reaches the measurement.
    group: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        group = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    guard = subprocess.Popen(
        [sys.executable, "-m", "sqlstress.cluster.job"],
        stdin=subprocess.PIPE, stdout=out, stderr=err, env=clean_environment(dict(os.environ)), **group,
    )  # fmt: skip
    assert guard.stdin
    try:
        with suppress(OSError):  # the guard has died; its complaint says why
            guard.stdin.write(json.dumps(order).encode() + b"\n")
            guard.stdin.flush()
        while guard.poll() is None:
            watch.check()
            with suppress(subprocess.TimeoutExpired):
                guard.wait(POLL_S)
    finally:
        with suppress(OSError):
            guard.stdin.close()
        try:
            guard.wait(GRACE_S + POLL_S)
        except subprocess.TimeoutExpired:
            guard.kill()  # its workers end with it
    return guard.wait()


class Watch:
    """Watches the heartbeat of the fleet, and the time limit."""

    def __init__(
        self, read: Callable[[], int], limit_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read, self._limit_s, self._clock = read, limit_s, clock
        self._began = self._heard = clock()
        self._last: int | None = None

    def check(self) -> None:
        """Raise EnvironmentFailure if the measurement has to stop."""
        now, beat = self._clock(), self._last
        with suppress(Exception):  # of a lost connection
            beat = self._read()
        if beat == STOP or now - self._heard > SILENT_S:
            raise EnvironmentFailure("the fleet was stopped")
        if beat != self._last:
            self._last, self._heard = beat, now
        if now - self._began > self._limit_s:
            raise EnvironmentFailure(
                f"it took more than {self._limit_s:g} s and was stopped (--limit); the limit includes the "
                "turns of other fleets on its machine"
            )


def clean_environment(environment: dict[str, str]) -> dict[str, str]:
    """Return the environment without the variables that Dask sets for its workers."""
    return {
        name: value
        for name, value in environment.items()
        if name not in _DASKS and not name.startswith("DASK_")
    }


if __name__ == "__main__":
    main()
