"""sqlstress that pauses at the beginning of a moment, until a test has struck and lets it continue.

Usage: python tests/faults/held.py MOMENT COUNT PORT ARGUMENTS OF SQLSTRESS

When the moment comes for the COUNT-th time it connects to the port, and continues when the connection is
closed. A trial that is repeated because it was not valid does not count again.
"""

import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlstress.engine.pool import WorkerExit
from sqlstress.engine.study import Observer
from sqlstress.engine.trial import TrialRunner

MOMENTS = ("examining", "preparing", "starting", "measuring", "verifying", "saving", "showing")
"""Moments, in their order. Examining: the machine. Saving: the new report has been written next to the old
one, and has not replaced it. In addition, connected: all workers have opened the files, and none of them has
begun; proving: verification has found that no other program has interfered.
"""


class Hold:
    """Pauses once."""

    def __init__(self, moment: str, count: int, port: int) -> None:
        self.moment, self.left, self.port = moment, count, port
        self.attempts = 0
        """Number of attempts of the current trial so far."""

    def reach(self, moment: str) -> None:
        """Pause if this is the moment."""
        if moment == self.moment and self.attempts < 2:
            self.left -= 1
            if self.left == 0:
                with socket.create_connection(("127.0.0.1", self.port)) as waiting:
                    waiting.recv(1)

    def before(self, moment: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that pauses before it calls `function`."""

        def pausing(*args: Any, **kwargs: Any) -> Any:
            self.reach(moment)
            return function(*args, **kwargs)

        return pausing

    def count_attempts(self, runner: type[TrialRunner]) -> None:
        """Count the attempts of each trial."""
        attempt, run_valid, once = runner._attempt, runner.run_valid, runner.once

        def count_attempt(*args: Any) -> Any:
            self.attempts += 1
            return attempt(*args)

        def trial(function: Callable[..., Any]) -> Callable[..., Any]:
            def run(*args: Any) -> Any:
                self.attempts = 0
                try:
                    return function(*args)
                finally:
                    self.attempts = 0

            return run

        counting = {"_attempt": count_attempt, "run_valid": trial(run_valid), "once": trial(once)}
        for name, function in counting.items():
            setattr(runner, name, function)


def install(hold: Hold) -> None:
    """Report every moment to a hold."""
    from sqlstress.cli import measure, outputs
    from sqlstress.engine import session
    from sqlstress.engine.trial import Guard
    from sqlstress.experiments.crash.database import CrashDatabase
    from sqlstress.experiments.crash.study import Victims
    from sqlstress.targets.place import Disturbance

    class Watch(Observer):
        def phase(self, name: str) -> None:
            hold.reach(name)

    @contextmanager
    def watcher(*_: object) -> Iterator[Watch]:
        yield Watch()

    disturbance = Guard.disturbance

    def looked(guard: Guard, ended: Sequence[WorkerExit]) -> Disturbance | None:
        found = disturbance(guard, ended)
        hold.reach("proving")
        return found

    setattr(Guard, "disturbance", looked)  # noqa: B010 - mypy minds an assignment
    hold.count_attempts(TrialRunner)
    vars(session)["fingerprint"] = hold.before("examining", vars(session)["fingerprint"])
    vars(measure)["watcher"] = watcher
    vars(outputs)["print_text"] = hold.before("showing", vars(outputs)["print_text"])
    for kind, name, moment in (
        (TrialRunner, "_window", "connected"),
        (CrashDatabase, "create", "preparing"),
        (Victims, "wait_ready", "starting"),
        (Victims, "let_write", "measuring"),
        (CrashDatabase, "examine", "verifying"),
    ):
        setattr(kind, name, hold.before(moment, getattr(kind, name)))
    move = Path.replace

    def saved(path: Path, target: Path) -> Path:
        if target.suffix == ".json":  # other renames are of database files
            hold.reach("saving")
        return move(path, target)

    setattr(Path, "replace", saved)  # noqa: B010 - mypy minds an assignment


if __name__ == "__main__":
    from sqlstress.__main__ import main
    from tests.brief import make_brief

    make_brief()
    moment, count, port = sys.argv[1:4]
    install(Hold(moment, int(count), int(port)))
    sys.argv[1:4] = []
    sys.exit(main())
