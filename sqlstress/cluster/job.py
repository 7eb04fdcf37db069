"""What a worker of the cluster does for us: it measures once, in a process of its own, and returns a report.

Dask would run a task again, go on with it after it was cancelled, and give it its own environment; and a
nanny's worker may have no children of multiprocessing. So the measurement is a process of its own, begun with
a ticket that is there once, and ended when whoever asked says so, or is no longer heard.
"""

from __future__ import annotations

import _thread
import json
import os
import platform
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import psutil

from sqlstress.errors import plainly
from sqlstress.show.blocks import shortened
from sqlstress.system.files import lock
from sqlstress.targets.meeting import INVITATION
from sqlstress.version import __version__

# A turn on a machine: of all that would measure there for a fleet, one at a time.
#
# A lock on a file in the temporary folder, which ends with its process; the file is removed with the turn.


class Turn:
    """Waits for its turn; over when it is closed."""

    def __init__(self, machine: str, folder: Path | None = None) -> None:
        digest = sha256(machine.encode()).hexdigest()[:16]
        self.path = (folder or Path(tempfile.gettempdir())) / f"sqlstress-fleet-{digest}.lock"
        self._held: IO[bytes] | None = None

    def is_ours(self) -> bool:
        """Try to take the turn; say whether it is ours. Never waits."""
        if self._held is not None:
            return True
        flags = os.O_RDONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            file = os.fdopen(os.open(self.path, flags, 0o666), "rb")
        except OSError:
            return False  # another user's, which we may not open
        with suppress(OSError):
            lock(file)
            # Who had it may have removed it: what is locked must still be the file of that name.
            if os.path.samestat(os.fstat(file.fileno()), self.path.stat()):
                self._held = file
                return True
        file.close()
        return False

    def close(self) -> None:
        if self._held is None:
            return
        # Removed while it is held, or another one's would be removed; Windows removes no open file.
        acts = (self.path.unlink, self._held.close)
        for act in acts if sys.platform != "win32" else reversed(acts):
            with suppress(OSError):
                act()
        self._held = None


# Runs sqlstress on a host for as long as whoever started it lives, and wants it.
#
# The first line of its standard input is what to do, as JSON; the input ends when the measurement is to end,
# also because the process that holds the other end was killed. The report goes to the standard output. The
# turn on this machine is taken here, so that it lasts as long as the measurement, whoever dies before.


GRACE_S = 15.0
"""So long a measurement may take to stop and clean up."""
TURN_S = 0.5
"""How often it is tried to get the turn on this machine."""
PREFIX = "sqlstress-plan-"


def main() -> None:
    """Measure what the first line asks for, when it is our turn."""
    line = bytearray()
    while (piece := os.read(0, 1)) not in (b"", b"\n"):  # and no further: what comes next is the end
        line += piece
    order = json.loads(line)
    end = _End()
    threading.Thread(target=end.wait, daemon=True).start()
    with (
        TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as own,
        closing(Turn(order["machine"])) as turn,
    ):
        while not (turn.is_ours() or end.is_here.is_set()):
            end.is_here.wait(TURN_S)
        with suppress(KeyboardInterrupt):
            if end.stops_us():
                _measure(order, Path(own) / "plan.toml")


def _measure(order: dict[str, str], plan: Path) -> None:
    plan.write_text(order["plan"], encoding="utf-8")
    sys.argv = [
        *("sqlstress", "run", str(plan), "--dir", order["directory"]),
        *("--quiet", "--no-progress", "--keep-going", "-o", "json:-"),  # in step with the other hosts
    ]
    if order.get("together"):
        os.environ[INVITATION] = order["together"]
    runpy.run_module("sqlstress", run_name="__main__")


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
                self._interrupt()
        time.sleep(GRACE_S)
        os._exit(1)

    def _interrupt(self) -> None:
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


def measure(ticket: str) -> Answer:
    """Measure what the order of `order` asks for that lies under a ticket, in a process of its own.

    It lies there, and not in the task, since Dask tells and logs of tasks what they were called with: a plan
    may hold a password.
    """
    from distributed import Queue, Variable

    try:
        order = json.loads(Queue(ticket).get(timeout=10))
    except TimeoutError:
        return TWICE, 0, "", b""
    variable = Variable(order["pulse"])
    watch = Watch(lambda: int(variable.get(timeout=POLL_S)), order["limit_s"])
    own = {name: order[name] for name in ("plan", "directory", "together")}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as complaints:
        why, code = _guarded({**own, "machine": machine()}, watch, out, complaints)
        complaints.seek(0)
        # As much of what was said as stands in a line or two.
        said = " ".join(complaints.read(600).decode("utf-8", "replace").split())
        if why:
            return why, code, said, b""
        out.seek(0)
        report = out.read(MOST_BYTES + 1)
        return (DONE, code, said, report) if len(report) <= MOST_BYTES else (LARGE, code, said, b"")


def _guarded(order: dict[str, Any], watch: Watch, out: IO[bytes], complaints: IO[bytes]) -> tuple[str, int]:
    """Have a guard measure; return why it was stopped, "" where it was not, and its exit code."""
    # In a group of its own: no signal to the worker reaches it.
    own_group: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        own_group = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    process = subprocess.Popen(
        [sys.executable, "-m", "sqlstress.cluster.job"],
        stdin=subprocess.PIPE, stdout=out, stderr=complaints, env=clean_environment(dict(os.environ)),
        **own_group,
    )  # fmt: skip
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
    return why, process.returncode


class Watch:
    """Watches the pulse of whoever asked: whether somebody still wants what is measured here."""

    def __init__(
        self, pulse: Callable[[], int], limit_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`pulse` asks for the pulse, and raises anything where it can't be had."""
        self._pulse, self._limit_s, self._clock = pulse, limit_s, clock
        self._begun = self._heard = clock()
        self._last: int | None = None

    def why_stop(self) -> str:
        """Return STOPPED or SLOW when it is time to stop; "" while it is not."""
        now, pulse = self._clock(), self._last
        with suppress(Exception):  # whatever a connection that is lost may raise: it is silence
            pulse = self._pulse()
        if pulse == STOP or now - self._heard > SILENT_S:
            return STOPPED
        if pulse != self._last:
            self._last, self._heard = pulse, now
        return SLOW if now - self._begun > self._limit_s else ""


def clean_environment(given: dict[str, str]) -> dict[str, str]:
    """Return the environment without what Dask has put there for its workers."""
    return {
        name: value for name, value in given.items() if name not in _DASKS and not name.startswith("DASK_")
    }


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a measurement if it still runs: its input ends, and if that is not enough, all is killed."""
    assert process.stdin
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(GRACE_S + POLL_S)
    except subprocess.TimeoutExpired:
        if sys.platform != "win32":
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
        else:
            with suppress(psutil.Error):
                own = psutil.Process(process.pid)
                for each in (*own.children(recursive=True), own):
                    with suppress(psutil.Error):
                        each.kill()
        process.wait()


def order(request: Any, pulse: str, together: str = "") -> str:
    """Return, as JSON, what `measure` is to do; `together`: the invitation to load a server with others."""
    return json.dumps(
        {
            "plan": request.plan,
            "directory": request.directory,
            "limit_s": request.limit_s,
            "pulse": pulse,
            "together": together,
        }
    )


# Which machine this is: what a worker of the cluster tells of itself.


def who() -> str:
    """Return, as JSON, what this host is called, which machine it is, and what it runs."""
    return json.dumps(
        {
            "host": host_name(),
            "machine": machine(),
            "sqlstress": __version__,
            "python": platform.python_version(),
        }
    )


def host_name() -> str:
    """Return what this host calls itself."""
    return socket.gethostname()


def machine() -> str:
    """Return what is the same for all containers of a physical machine, and for no two machines.

    A container has a name of its own, and shares the boot with others. Where a system names no boots,
    the host's name and the second of its start have to do.
    """
    try:
        if sys.platform == "linux":
            return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        if sys.platform == "darwin":
            sysctl = ("/usr/sbin/sysctl", "-n", "kern.bootsessionuuid")
            done = subprocess.run(sysctl, capture_output=True, timeout=2.0, check=True)
            return done.stdout.decode("ascii").strip()
    except (OSError, ValueError, subprocess.SubprocessError):
        pass
    return f"{host_name()} {psutil.boot_time():.0f}"


# Why there is no report of a host, in a clause.


_LONGEST_REASON = 200


def parsed(answer: object) -> Answer | None:
    """Return a host's answer; None of what is none."""
    match answer:
        case (str(ending), int(code), str(said), bytes(report)):
            return ending, code, said, report
    return None


def why_no_report(answer: Answer, limit_s: float) -> str:
    """Return why a host's answer holds no report; "" where it holds one."""
    ending, code, said, report = answer
    if ending == DONE and report.strip():
        return ""
    if ending == DONE:
        spoken = said or "it said nothing"
        return shortened(f"it ended with exit code {code} and no report: {spoken}", _LONGEST_REASON)
    return {
        STOPPED: "it was told to stop",
        SLOW: f"it took more than {limit_s:g} s and was stopped (--limit); while another fleet measures on "
        "its machine, it waits",
        TWICE: "it was asked again what it had done already, and did not do it twice",
        LARGE: f"its report is larger than {MOST_BYTES >> 20} MiB",
    }.get(ending, "it ended in a way that is not known here")


def problem(error: BaseException, is_there: bool) -> str:
    """Return what an exception from a host means."""
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("sqlstress"):
        if error.name == "sqlstress":
            return "sqlstress is not installed there: python -m pip install sqlstress"
        return "its sqlstress is too old for a fleet: install the one that is here"
    if not is_there:
        return "it disappeared"
    return shortened(plainly(error), _LONGEST_REASON)
