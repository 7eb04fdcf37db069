"""What the connections that the user's code opens really run with: looked at without touching that code.

Python tells an audit hook of each connection of its sqlite3, but before it can be used. So a profile function
is set that is called when the next thing happens in that thread, and takes itself away: then `connect` has
returned, and nothing has been done with the connection yet. Later it is done once more, when the first
statement that is no PRAGMA has run: by then the settings are those that the application works with. A trace
of the first statements says how transactions begin. It is called amid a statement, when nothing is asked,
as what is read there is a snapshot that the statement would have to write with: then no lock is waited for.

Source: https://docs.python.org/3/library/audit_events.html
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from sqlstress.errors import UsageError
from sqlstress.experiments.app.begins import Begins

MOST_CONNECTIONS = 50
"""So many connections of a process are looked at, the others are counted."""
MOST_STATEMENTS = 200
"""So many statements of each."""
READ = ("journal_mode", "synchronous", "busy_timeout", "foreign_keys")
_OWN = (sqlite3.Connection, sqlite3.Cursor)
_HAS_KEYS = "SELECT 1 FROM sqlite_schema AS t, pragma_foreign_key_list(t.name) LIMIT 1"
_PRAGMA = re.compile(r"\s*(--|pragma\b|begin\b|savepoint\b|commit\b|rollback\b|attach\b)", re.IGNORECASE)


class Seen:
    """One connection, as it was seen."""

    def __init__(self) -> None:
        self.opened_timeout_ms: int | None = None
        """The busy time-out that `connect` gave it."""
        self.isolation: str | None = None
        self.file = ""
        self.answers: dict[str, str] = {}
        """By PRAGMA, of READ; empty: nothing was done with it but PRAGMAs."""
        self.has_keys = False
        """Whether tables declare foreign keys; looked at where they are off."""
        self.begins = Begins()


class Watch:
    """The connections of this process. There is no way back: a hook stays until the process ends."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.others = 0
        """Connections beyond those that are looked at."""
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event != "sqlite3.connect/handle":
            return
        if len(self.seen) >= MOST_CONNECTIONS:
            self.others += 1
            return
        seen = Seen()
        self.seen.append(seen)
        _next_moment(lambda: _opened(args[0], seen), _at_once)


def protect(original: str) -> None:
    """Let nobody in this process connect to a database of the user's: it is its copy that is stressed."""
    if not original:
        return
    own = Path(original).absolute()

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "sqlite3.connect" and _is_file(args[0], own):
            raise UsageError(
                f"the app opens the original, {original}: let it open the path that it is given, which "
                "SQLSTRESS_DATABASE has too"
            )

    sys.addaudithook(hook)


def _is_file(name: Any, own: Path) -> bool:
    """Return whether a name that is connected to, a path or an URI, is that of a file."""
    try:
        text = os.fsdecode(name).removeprefix("file://").removeprefix("file:").partition("?")[0]
        return Path(text).samefile(own)
    except (OSError, TypeError, ValueError):
        return False


def _next_moment(call: Callable[[], None], has_come: Callable[[FrameType, str, Any], bool]) -> None:
    """Call a function when the next thing happens in this thread that `has_come` takes."""
    before = sys.getprofile()

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        if not has_come(frame, event, arg):
            return
        sys.setprofile(before)
        try:
            call()
        except sqlite3.Error:
            pass  # it was closed meanwhile, or is busy: then nothing is known of it

    sys.setprofile(profile)


def _at_once(*_: Any) -> bool:
    return True


def _has_run(caller: FrameType) -> Callable[[FrameType, str, Any], bool]:
    """Return what says whether the statement has run that a frame is running by now."""
    place = caller.f_lasti

    def has_come(frame: FrameType, event: str, arg: Any) -> bool:
        # The same place in a loop is come to again; what Python calls there has returned before.
        ended = event in ("c_return", "c_exception") and isinstance(getattr(arg, "__self__", None), _OWN)
        return ended or caller.f_lasti != place or (frame is caller and event == "return")

    return has_come


def _opened(connection: sqlite3.Connection, seen: Seen) -> None:
    """Look at a connection with which nothing has been done yet."""
    seen.opened_timeout_ms = int(_ask(connection, "PRAGMA busy_timeout"))
    count = 0

    def trace(sql: str) -> None:
        nonlocal count
        count += 1
        if not seen.answers and not _PRAGMA.match(sql):
            _next_moment(lambda: _look(connection, seen), _has_run(sys._getframe(1)))
        seen.begins.add(sql)
        if count == MOST_STATEMENTS:
            # Not here: SQLite is amid the call of this function.
            _next_moment(lambda: connection.set_trace_callback(None), _has_run(sys._getframe(1)))

    connection.set_trace_callback(trace)


def _look(connection: sqlite3.Connection, seen: Seen) -> None:
    """Look at a connection that works."""
    seen.isolation = _isolation(connection)
    seen.file = str(_ask(connection, "SELECT file FROM pragma_database_list WHERE name = 'main'") or "")
    seen.answers = {name: str(_ask(connection, f"PRAGMA {name}")).lower() for name in READ}
    if seen.answers["foreign_keys"] == "0":
        seen.has_keys = _ask(connection, _HAS_KEYS) is not None


def _isolation(connection: sqlite3.Connection) -> str:
    """Return who begins transactions: autocommit, Python (and how), or whoever writes BEGIN."""
    autocommit = getattr(connection, "autocommit", -1)
    if autocommit is True or autocommit is False:
        return f"autocommit={autocommit}"
    return f"isolation_level={connection.isolation_level!r}"


def _ask(connection: sqlite3.Connection, sql: str) -> Any:
    """Return the first column of the first row, whatever rows the user wants to be made of rows."""
    cursor = sqlite3.Cursor(connection)
    cursor.row_factory = None
    row = cursor.execute(sql).fetchone()
    return row[0] if row else None
