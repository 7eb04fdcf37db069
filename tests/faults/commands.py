"""Commands that pause at a moment, so that a fault can strike there, in a folder with the user's files."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from tests.engine.processes import Command, gone
from tests.faults.held import MOMENTS

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and terminals of POSIX")

HELD = Path(__file__).with_name("held.py")
SLICE = ("--key-space", "500", "--warmup", "50ms", "--duration", "100ms")
LONGER = (*SLICE[:-1], "300ms")
"""Long enough to complete something on a machine that others use."""
ONCE = ("--repeat", "1")
BRIEF = ("--warmup", "50ms", "--duration", "300ms", "-c", "2")
BANK = str(Path(__file__).parents[2] / "examples" / "app" / "bank.py")
SHORT = (*SLICE, *ONCE)
EXPERIMENTS = {
    "methods": ("methods", "--phase", "insert", "--scale", "20", "--driver", "sqlite3", *ONCE),
    "keys": ("keys", "--schema=no-key", "--id-type=uuid4", "--users=20", "--picks=10", "--items=60", *ONCE),
    "cycles": ("cycles", "--cycles", "3", "--settings", "wal", *ONCE),
    "crash": ("crash", "--rounds", "2", "--seed", "1"),
    "sql": ("sql", "-b", "bank", *BRIEF, *ONCE),
    "app": ("app", BANK, *BRIEF, *ONCE),
    "limit": ("limit", "sql", "-b", "bank", "--p99", "1s", "--max-time", "9s", *BRIEF),
    "ab": ("ab", "--a=--synchronous=normal", "--b=--synchronous=off", "--max-pairs=10", "-c2", *LONGER),
}
"""Small measurements of the commands other than kv and run."""
EVERYWHERE = [(experiment, moment) for experiment in EXPERIMENTS for moment in MOMENTS]
HERE_AND_THERE = {
    ("methods", "measuring"),
    ("keys", "starting"),
    ("cycles", "verifying"),
    ("sql", "preparing"),
    ("app", "showing"),
    ("limit", "saving"),
    ("ab", "examining"),
    ("ab", "measuring"),
    *(("crash", moment) for moment in ("preparing", "starting", "measuring", "verifying")),
}
"""All moments and all commands; more of crash, which has its own rounds."""
PLAN = """
workload = "kv"
repeat = 1
key-space = 500
warmup = "200ms"
concurrency = 2
[[case]]
duration = "100ms"
[[case]]
duration = "{duration}"
"""
REPORT = ("-o", "report.json")
OF_THE_USER = ("kv.db", "kv.db-wal", "sqlstress-notes.txt")


class Held(Command):
    """A command that pauses at a moment, from `with` until `let_go` or `finish`."""

    def __init__(self, place: Path, moment: str, *arguments: str, count: int = 1, **options: Any) -> None:
        for name in OF_THE_USER:
            (place / name).write_text("mine", encoding="utf-8")
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.settimeout(0.05)
        self._waiting: socket.socket | None = None
        port = self._server.getsockname()[1]
        program = (sys.executable, str(HELD), moment, str(count), str(port))
        super().__init__(place, *arguments, program=program, **options)

    def __enter__(self) -> Held:
        try:
            self._waiting = self.until(self._reached, "such moment")
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def _reached(self) -> socket.socket | None:
        try:
            return self._server.accept()[0]
        except TimeoutError:
            return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        self.let_go()
        super().__exit__(kind, error, trace)

    def let_go(self) -> None:
        """Let the command continue."""
        if self._waiting:
            self._waiting.close()
            self._waiting = None

    def finish(self) -> tuple[int, str, str]:
        """Let the command run to its end; return (exit code, standard output, standard error)."""
        self.let_go()
        return super().finish()


def second_case(place: Path, moment: str, **options: Any) -> Held:
    """Return a run of a plan of two cases that pauses at a moment, in the second case if it reaches it."""
    duration = "60s" if moment in ("preparing", "starting", "measuring") else "100ms"
    (place / "plan.toml").write_text(PLAN.format(duration=duration), encoding="utf-8")
    count = 1 if moment in ("examining", "showing") else 2
    return Held(place, moment, "run", "plan.toml", *REPORT, count=count, **options)


def strike(command: Command, name: str) -> None:
    """Send a signal to the command and to all its processes, as a terminal does."""
    if sys.platform != "win32":
        os.killpg(command.process.pid, signal.Signals[name])


def stopped(command: Command, name: str = "SIGINT") -> tuple[int, str, str]:
    """Send the signal, wait until the command and its processes have ended, and return (exit code, output,
    errors).
    """
    children = command.children()
    strike(command, name)
    ended = command.finish()
    assert gone(children)
    return ended


def left(place: Path) -> list[str]:
    """Return the names of the files in the folder except the user's, which must be unchanged."""
    for name in OF_THE_USER:
        assert (place / name).read_text(encoding="utf-8") == "mine"
    return sorted(path.name for path in place.iterdir() if path.name not in OF_THE_USER)


def last_option_wins() -> tuple[str, ...]:
    """Return a program that drops the --dir that Command adds after ours."""
    script = "import sys; sys.argv[-2:] = []; from sqlstress.__main__ import main; sys.exit(main())"
    return (sys.executable, "-c", script)
