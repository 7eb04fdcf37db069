"""sqlstress that stands still at the beginning of a moment, until a test has struck and lets it go on.

Usage: python tests/faults/held.py MOMENT COUNT PORT ARGUMENTS OF SQLSTRESS

When the moment has come so many times it connects to the port, and goes on when the connection is closed.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlstress.engine.pool import Ended
from sqlstress.engine.study import Observer

MOMENTS = ("examining", "preparing", "starting", "measuring", "verifying", "saving", "showing")
"""In their order. Examining: the machine. Saving: the new report has been written beside the old one, and
has not taken its place. Besides, connected: all workers have opened the files, and none of them has begun;
proving: verifying has found that nobody else had a hand in it."""


class Hold:
    """Stands still once."""

    def __init__(self, moment: str, count: int, port: int) -> None:
        self.moment, self.left, self.port = moment, count, port

    def reach(self, moment: str) -> None:
        """Stand still if this is the moment."""
        if moment == self.moment:
            self.left -= 1
            if self.left == 0:
                with socket.create_connection(("127.0.0.1", self.port)) as waiting:
                    waiting.recv(1)

    def before(self, moment: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that stands still before it does what it does."""

        def held(*args: Any, **kwargs: Any) -> Any:
            self.reach(moment)
            return function(*args, **kwargs)

        return held


def install(hold: Hold) -> None:
    """Have every moment told to a hold."""
    from sqlstress.cli import measure, outputs
    from sqlstress.engine import session
    from sqlstress.engine.trial import Guard, TrialRunner
    from sqlstress.experiments.crash.database import Database
    from sqlstress.experiments.crash.study import Victims
    from sqlstress.targets.place import Disturbance

    class Watch(Observer):
        def phase(self, name: str) -> None:
            hold.reach(name)

    @contextmanager
    def watcher(*_: object) -> Iterator[Watch]:
        yield Watch()

    disturbance = Guard.disturbance

    def looked(guard: Guard, ended: Sequence[Ended]) -> Disturbance | None:
        found = disturbance(guard, ended)
        hold.reach("proving")
        return found

    setattr(Guard, "disturbance", looked)  # noqa: B010 - mypy minds an assignment
    vars(session)["fingerprint"] = hold.before("examining", vars(session)["fingerprint"])
    vars(measure)["watcher"] = watcher
    vars(outputs)["say"] = hold.before("showing", vars(outputs)["say"])
    for kind, name, moment in (
        (TrialRunner, "_window", "connected"),
        (Database, "create", "preparing"),
        (Victims, "wait_ready", "starting"),
        (Victims, "let_write", "measuring"),
        (Database, "examine", "verifying"),
    ):
        setattr(kind, name, hold.before(moment, getattr(kind, name)))
    move = Path.replace

    def saved(path: Path, target: Path) -> Path:
        if target.suffix == ".json":  # and no file of a database
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
