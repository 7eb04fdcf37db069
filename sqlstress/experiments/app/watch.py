"""What the connections that the user's code opens really run with: looked at without touching that code.

Python tells an audit hook of each connection of its sqlite3, but before it can be used. So a profile function
is set that is called when the next thing happens in that thread, and takes itself away: then `connect` has
returned, and nothing has been done with the connection yet. From then on a trace of its first statements says
how transactions begin, and when something that was written is committed: that is when the settings are asked,
and again where a PRAGMA has run since. They are asked amid that statement, by PRAGMAs that read nothing of
the database, so that no lock is waited for, and no snapshot taken.

A server is asked at the end, on the connections that are idle then.

Source: https://docs.python.org/3/library/audit_events.html
"""

from __future__ import annotations

import gc
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlstress.experiments.app import (
    ALONE,
    BEGINNING,
    BEGINS,
    CONNECTION,
    HERE,
    INSIDE,
    SESSION,
    THREADED,
    UNREAD,
    UNSEEN,
    WHOLE,
    belongs,
)
from sqlstress.targets.postgres.dialect import REPORTED
from sqlstress.user_work.failures import LEAD, words_of
from sqlstress.user_work.listening import Listener, next_moment
from sqlstress.user_work.source import MOST_KINDS, Plain
from sqlstress.user_work.threads import works_beside

if TYPE_CHECKING:
    from sqlstress.experiments.app.ledger import Ledger

MOST_CONNECTIONS = 50
"""So many connections of a process are looked at, the others are counted."""
MOST_STATEMENTS = 200
"""So many statements of each."""
READ = ("journal_mode", "synchronous", "busy_timeout", "foreign_keys")
_SYNCHRONOUS = ("off", "normal", "full", "extra")

# How transactions begin: read from the statements of a connection, in their order.


_READS, _WRITES = ("SELECT", "VALUES", "WITH"), ("INSERT", "UPDATE", "DELETE", "REPLACE")
_WRITES_WITHIN = re.compile(rf"\b({'|'.join(_WRITES)})\b", re.IGNORECASE)
DEFERRED = "DEFERRED"
_HOW = (DEFERRED, "IMMEDIATE", "EXCLUSIVE")
_SETTING = re.compile(
    rf"{LEAD}(--|pragma\b|begin\b|savepoint\b|commit\b|rollback\b|attach\b)", re.IGNORECASE | re.DOTALL
)


class Begins:
    """What was seen of the transactions of a connection that write."""

    def __init__(self) -> None:
        self.ways: dict[str, None] = {}
        """How they begin, in the order in which it was first seen."""
        self.locks: dict[str, None] = {}
        """The ways to begin that take the write lock, in the order in which they were first seen."""
        self.upgrades = 0
        """Those that began DEFERRED, read, and then wrote."""
        self.committed = False
        """Whether any of them was committed."""
        self.is_known = False
        """Whether no PRAGMA has run since the settings were asked last."""
        self._how = ""
        self._has_read = self._has_written = False

    def add(self, sql: str) -> bool:
        """Take a statement that begins to run; return whether it commits what was written."""
        word, second = words_of(sql)
        if word == "PRAGMA":
            self.is_known = False
        elif word == "BEGIN" or (word == "SAVEPOINT" and not self._how):
            self._how = second if second in _HOW else DEFERRED
            if self._how != DEFERRED:
                self.locks[self._how] = None
            self._has_read = self._has_written = False
        elif word in ("COMMIT", "END") or (word == "ROLLBACK" and second != "TO"):
            commits = word != "ROLLBACK" and self._how != "" and self._has_written
            self._how = ""
            return commits
        elif word in _WRITES or (word == "WITH" and _WRITES_WITHIN.search(sql)):
            self.ways[self._how or ALONE] = None
            self.upgrades += self._how == DEFERRED and self._has_read and not self._has_written
            self._has_written = True
            return self._how == ""
        elif word in _READS:
            self._has_read = True
        return False


# The connections of a process, and what is seen of each.


class Seen:
    """One connection, as it was seen."""

    def __init__(self) -> None:
        self.opened_timeout_ms: int | None = None
        """The busy time-out that `connect` gave it."""
        self.isolation = ""
        self.file = ""
        self.answers: dict[str, str] = {}
        """By PRAGMA, of READ; empty: nothing was done with it but PRAGMAs."""
        self.shared: sqlite3.Connection | None = None
        """The connection, where threads use it at once, so that it is asked at the end."""
        self.works = False
        """Whether it has run a statement that is no setting."""
        self.watched = WHOLE
        """Which of its statements were seen."""
        self.begins = Begins()

    def look(self, connection: sqlite3.Connection) -> None:
        """Ask what it runs with, and who begins transactions: autocommit, Python (and how), or its user."""
        autocommit = getattr(connection, "autocommit", -1)
        self.isolation = (
            f"autocommit={autocommit}"
            if isinstance(autocommit, bool)
            else f"isolation_level={connection.isolation_level!r}"
        )
        self.file = _file_of(connection)
        self.answers = {name: str(_first_row(connection, f"PRAGMA {name}")[0]).lower() for name in READ}

    def look_at_last(self) -> None:
        """Ask a connection that threads share, once they have ended their work."""
        if self.shared and not works_beside():
            with suppress(sqlite3.Error):  # it was closed
                self.look(self.shared)

    def traits(self, file: str) -> dict[str, str]:
        """Return what it ran with, in words."""
        database = database_of(self.file, file)
        level = self.answers["synchronous"]
        return {
            "database": database,
            "journal_mode": self.answers["journal_mode"],
            "synchronous": _SYNCHRONOUS[int(level)] if level in ("0", "1", "2", "3") else level,
            "busy_timeout": self.answers["busy_timeout"],
            "opened_with": str(self.opened_timeout_ms),
            "foreign_keys": "on" if self.answers["foreign_keys"] == "1" else "off",
            "python": self.isolation,
            "writes_begin": ", ".join(self.begins.ways),
            "upgrades": "yes" if self.begins.upgrades else "no",
            "committed": "yes" if self.begins.committed else "no",
            "watched": self.watched,
            "locks": ", ".join(self.begins.locks),
        }


class FileWatch:
    """The connections of this process. There is no way back: a hook stays until the process ends."""

    def __init__(self, file: str, ledger: Ledger | None = None) -> None:
        """`file` is the trial's database; a ledger follows all connections to it."""
        self._file, self._ledger = file, ledger
        self._seen: list[Seen] = []
        self._others = 0
        """Connections beyond those that are looked at."""
        self._is_over = False
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event != "sqlite3.connect/handle" or self._is_over:
            return
        seen = Seen() if len(self._seen) < MOST_CONNECTIONS else None
        if seen:
            self._seen.append(seen)
        else:
            self._others += 1
        next_moment(lambda: self._opened(args[0], seen))

    def _opened(self, connection: sqlite3.Connection, seen: Seen | None) -> None:
        """Follow a connection with which nothing has been done yet."""
        followed = None
        if self._ledger and database_of(_file_of(connection), self._file) == HERE:
            followed = self._ledger.follow(connection)
        looks = _looks_on(connection, seen) if seen else None

        def begins(sql: str) -> bool:
            lasts = looks is not None and looks(sql)
            if followed:
                # At the end: what runs after it is taken for what follows the statement.
                followed.begins(sql)
            return lasts or followed is not None

        def ends() -> None:
            if seen:
                seen.shared = connection
                seen.works, seen.watched = True, THREADED
            if followed:
                followed.is_shared()

        if looks or followed:
            Listener(connection, begins, ends)

    def sightings(self) -> list[Plain]:
        """Return what was seen, each kind once with how often it was."""
        kinds = Counter(tuple(traits.items()) for traits in self._traits())
        unread = sum(seen.works and not seen.answers for seen in self._seen)
        found: list[Plain] = [
            (CONNECTION, "sqlite3", count, "", dict(traits))
            for traits, count in kinds.most_common(MOST_KINDS)
        ]
        missing: list[Plain] = [
            (UNSEEN, "sqlite3", self._others, "", {}),
            (UNREAD, "sqlite3", unread, "", {}),
        ]
        return found + [sighting for sighting in missing if sighting[2]]

    def effective(self) -> dict[str, str]:
        """Return the settings of the connections to the file; where they differ, all answers."""
        traits_of = [traits for traits in self._traits() if belongs(traits["database"])]
        here = [traits for traits in traits_of if traits["database"] == HERE] or traits_of
        # What a commit was made with is not told by those that made none.
        here = [traits for traits in here if traits["committed"] == "yes"] or here
        names = ("journal_mode", "synchronous", "busy_timeout") if here else ()
        return {name: " / ".join(dict.fromkeys(traits[name] for traits in here)) for name in names}

    def _traits(self) -> list[dict[str, str]]:
        if not self._is_over:
            self._is_over = True
            for one in self._seen:
                one.look_at_last()
        return [one.traits(self._file) for one in self._seen if one.answers]


def _looks_on(connection: sqlite3.Connection, seen: Seen) -> Callable[[str], bool]:
    """Return what takes the first statements of a connection, and says whether it takes more."""
    seen.opened_timeout_ms = _first_row(connection, "PRAGMA busy_timeout")[0]
    begins, numbers = seen.begins, count(1)

    def look(sql: str) -> bool:
        if next(numbers) > MOST_STATEMENTS:
            seen.watched = BEGINNING
            return False
        seen.works = seen.works or not _SETTING.match(sql)
        commits = begins.add(sql)
        begins.committed |= commits
        # Before something is committed a setting may still come: some libraries query first.
        if (commits and not begins.is_known) or (not seen.answers and not _SETTING.match(sql)):
            begins.is_known = commits
            with suppress(sqlite3.Error):
                seen.look(connection)
        return True

    return look


def _first_row(connection: sqlite3.Connection, sql: str) -> tuple[Any, ...]:
    """Return the first row, whatever the user wants to be made of rows; without one a row of nothing."""
    cursor = sqlite3.Cursor(connection)
    cursor.row_factory = None
    return cursor.execute(sql).fetchone() or (None, None, None)


def _file_of(connection: sqlite3.Connection) -> str:
    # The main database comes first; the PRAGMA as a table would begin to read.
    return _first_row(connection, "PRAGMA database_list")[2] or ""


def database_of(name: str, file: str) -> str:
    """Return which database a connection has: this one, one in memory, or the path of another."""
    if not name:
        return ":memory:"
    with suppress(OSError):  # an app that keeps another one beside it may not make it
        if Path(name).samefile(file):
            return HERE
    try:
        own, folder = Path(name).resolve(), Path(file).resolve().parent
    except OSError:
        return name
    return f"{INSIDE}{own.relative_to(folder).as_posix()}" if own.is_relative_to(folder) else name


# A server's connections. Nobody tells of one that a library in C opens, so nothing is seen of those that were
# closed before.


NAMES = (*REPORTED, "statement_timeout")
_ASKED = (
    "SELECT pg_postmaster_start_time()::text, current_database(), coalesce(current_schema(), ''), "
    f"{', '.join(f'current_setting({name!r})' for name in NAMES)}"
)
_PLACE = ("server", "database", "schema")
_OF_SESSION = ("synchronous_commit", "transaction_isolation", "lock_timeout")
"""Of what is reported, what each session may set for itself."""
_LEVELS = {1: "read uncommitted", 2: "read committed", 3: "repeatable read", 4: "serializable"}
"""psycopg's numbers for a level that a connection begins each transaction with, beside what is set."""

Answers = dict[str, str]


class ServerWatch:
    """The connections of this process that psycopg opened; they are looked at once, when all is done."""

    def __init__(self, address: str) -> None:
        """Look at what a session there begins with. Raises EnvironmentFailure where there can be none."""
        from sqlstress.targets.postgres.own_schema import opened

        with opened(address, "cannot use the server") as connection:
            begins = _answers(connection)
        assert begins
        del begins["autocommit"]  # that is of the library, and the user's may have another
        self._begins = begins

    def sightings(self) -> list[Plain]:
        """Return what the connections ran with, each kind once with how often it was.

        Where none was seen, what a session of the trial begins with.
        """
        kinds = Counter(tuple(self._traits(one).items()) for one in self._sessions)
        seen: list[Plain] = [(SESSION, "psycopg", count, "", dict(traits)) for traits, count in kinds.items()]
        return seen or [(BEGINS, "psycopg", 1, "", self._traits(self._begins))]

    def effective(self) -> dict[str, str]:
        """Return the settings of those in the trial's schema; where they differ, all answers.

        Where none was seen it is not known what they had set: then it is only what no session can set.
        """
        here = [one for one in self._sessions if self._is_here(one)]
        if not here:
            return {name: self._begins[name] for name in REPORTED if name not in _OF_SESSION}
        return {name: " / ".join(dict.fromkeys(one[name] for one in here)) for name in REPORTED}

    @cached_property
    def _sessions(self) -> list[Answers]:
        return list(filter(None, map(_answers, open_connections())))

    def _is_here(self, answers: Answers) -> bool:
        return all(answers[name] == self._begins[name] for name in _PLACE)

    def _traits(self, answers: Answers) -> Answers:
        """Return what one connection ran with, in words."""
        elsewhere = f"{answers['database']}.{answers['schema'] or '(no schema)'}"
        return {
            "database": HERE if self._is_here(answers) else elsewhere,
            "synchronous_commit": answers["synchronous_commit"],
            "isolation": answers["transaction_isolation"],
            "lock_timeout": answers["lock_timeout"],
            "statement_timeout": answers["statement_timeout"],
            **{name: answers[name] for name in ("autocommit",) if name in answers},
        }


def open_connections() -> Iterator[Any]:
    """Yield psycopg's connections of this process, of both kinds."""
    import psycopg

    gc.unfreeze()  # what is there before a window opens is frozen, which hides it
    for one in gc.get_objects():
        # Not isinstance, which asks a stand-in of somebody's for the class of what it stands for.
        if issubclass(type(one), psycopg.Connection | psycopg.AsyncConnection) and not one.closed:
            yield one


def _answers(connection: Any) -> Answers | None:
    """Return what a connection answers; None where it can't, such as amid a query.

    It is asked below what begins a transaction, and makes rows of the user's own kind. A transaction that has
    failed is ended for it: nobody goes on with it any more.
    """
    from psycopg.pq import ExecStatus, TransactionStatus

    try:
        low = connection.pgconn
        if low.transaction_status == TransactionStatus.INERROR:
            low.exec_(b"ROLLBACK")
        if low.transaction_status not in (TransactionStatus.IDLE, TransactionStatus.INTRANS):
            return None
        result = low.exec_(_ASKED.encode())
        if result.status != ExecStatus.TUPLES_OK:
            return None
        names = (*_PLACE, *NAMES)
        values = [(result.get_value(0, place) or b"").decode(errors="replace") for place in range(len(names))]
        answers = dict(zip(names, values, strict=True))
        if level := _LEVELS.get(connection.isolation_level or 0):
            answers["transaction_isolation"] = level
        return {**answers, "autocommit": "on" if connection.autocommit else "off"}
    except Exception:
        return None
