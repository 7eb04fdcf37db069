"""The part of a fleet run on each host: measure a plan in a separate process, return the report.

A cancelled Dask task goes on, and multiprocessing cannot start children in a worker of Dask's nanny. So a
task starts a guard: a process that runs this module as a program. The heartbeat is a number on the scheduler
that the client changes while it wants the measurement.
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
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from sqlstress.errors import EnvironmentFailure

GRACE_S = 15.0
"""Maximum time for a stopped measurement to clean up, in seconds."""
TURN_PORT = 28_461
"""Local port that each measurement binds, so that two fleets measure on a machine in turn."""
POLL_S = 2.0
"""Time between two readings of the heartbeat, or two attempts to bind the port, in seconds."""
SILENT_S = 60.0
"""Time without a change of the heartbeat after which a task stops, in seconds."""
STOP = -1
"""Value of the heartbeat with which the client stops all tasks."""
_DASKS = ("MALLOC_TRIM_THRESHOLD_", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def identity() -> tuple[str, str]:
    """Return the name of this host, and an id of the machine, which its containers share."""
    name = socket.gethostname()
    with suppress(OSError):
        return name, Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return name, f"{name} {uuid.getnode():x}"


def main() -> None:
    """Measure the plan in the first line of standard input; stop if standard input ends.

    Standard input also ends if the Dask worker is killed. The report goes to standard output. This process
    binds the port itself, so that the port stays taken as long as the measurement runs.
    """
    order = json.loads(sys.stdin.buffer.readline())
    ended, measuring = threading.Event(), threading.Event()
    threading.Thread(target=_stop_at_end, args=(ended, measuring), daemon=True).start()
    with (
        tempfile.TemporaryDirectory(prefix="sqlstress-plan-", ignore_cleanup_errors=True) as folder,
        socket.socket() as turn,
    ):
        while not take_turn(turn, order["port"]):
            if ended.wait(POLL_S):
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


def take_turn(turn: socket.socket, port: int) -> bool:
    """Bind `port` to the socket `turn` until this process ends; return whether the port was free."""
    with suppress(OSError):
        turn.bind(("127.0.0.1", port))
        return True
    return False


def _stop_at_end(ended: threading.Event, measuring: threading.Event) -> None:
    """Stop this process at the end of standard input, as Ctrl-C does; if it does not end, by force."""
    with suppress(OSError):
        while os.read(0, 1):
            pass
    ended.set()
    measuring.wait()  # An interrupt before the measurement would leave files behind.
    if sys.platform == "win32":
        _thread.interrupt_main()
    else:
        # A signal to the main thread also interrupts a system call in which the thread waits.
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    time.sleep(GRACE_S)
    os._exit(1)


def measure(run: str) -> tuple[int, str, bytes]:
    """Measure the plan of a fleet run; return (exit code, text of standard error, report).

    `run` is the name of the heartbeat on the scheduler. Raises EnvironmentFailure if there is no report.
    """
    from distributed import Variable

    heartbeat = Variable(run)
    order = {**json.loads(Variable(f"{run}-order").get(timeout=10)), "port": TURN_PORT}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        code = _run_guard(order, HeartbeatMonitor(lambda: int(heartbeat.get(timeout=POLL_S))), out, err)
        out.seek(0)
        err.seek(0)
        report, complaint = out.read(), " ".join(err.read(600).decode("utf-8", "replace").split())
    if not report.strip():
        raise EnvironmentFailure(f"it ended with exit code {code} and no report: {complaint or 'no message'}")
    return code, complaint, report


def _run_guard(order: dict[str, Any], watch: HeartbeatMonitor, out: IO[bytes], err: IO[bytes]) -> int:
    """Run the measuring process; return its exit code. Raises EnvironmentFailure if the fleet stops."""
    # The guard has its own process group, so that no signal to the Dask worker reaches the measurement.
    guard = subprocess.Popen(
        [sys.executable, "-m", "sqlstress.cluster.job"],
        stdin=subprocess.PIPE, stdout=out, stderr=err, start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        env={name: value for name, value in os.environ.items() if name not in _DASKS},
    )  # fmt: skip
    assert guard.stdin
    try:
        with suppress(OSError):  # A guard that has died reports the reason on its standard error.
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
            guard.kill()  # The guard's workers end with it.
    return guard.wait()


class HeartbeatMonitor:
    """Monitor of the heartbeat, a number that the client changes while it wants the measurement."""

    def __init__(self, read: Callable[[], int], clock: Callable[[], float] = time.monotonic) -> None:
        self._read, self._clock = read, clock
        self._heard, self._last = clock(), 0

    def check(self) -> None:
        """Raise EnvironmentFailure if the client stopped the fleet, or was silent for SILENT_S."""
        now, beat = self._clock(), self._last
        with suppress(Exception):  # The connection may be lost for a moment.
            beat = self._read()
        if beat == STOP or now - self._heard > SILENT_S:
            raise EnvironmentFailure("the fleet was stopped")
        if beat != self._last:
            self._last, self._heard = beat, now


if __name__ == "__main__":
    main()
