"""Effective settings of the connections that the user's code opens, read without changing that code.

Python reports each sqlite3 connection to an audit hook before the connection is usable. The hook installs a
profile function, which runs when `connect` has returned, before the user's code uses the connection.

SQLite's trace then reports the connection's first statements, which show how transactions begin and when data
is committed. PRAGMAs read the settings at the first query or write, at the first commit, and again at a
commit after a PRAGMA of the user. They read no data, so that they wait for no lock and take no snapshot.

Settings of PostgreSQL connections are read once, after the load, from connections that run no query.

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
    BEGINNING,
    BEGINS,
    CONNECTION,
    HERE,
    INSIDE,
    SESSION,
    SINGLE_STATEMENT,
    THREADED,
    UNREAD,
    UNSEEN,
    WHOLE,
    is_trial_database,
)
from sqlstress.races.listening import Listener, call_soon
from sqlstress.recording import PlainObservation
from sqlstress.recording.failures import LEAD, words_of
from sqlstress.recording.threads import other_threads_running
from sqlstress.targets.postgres.dialect import REPORTED
from sqlstress.user_work.source import MAX_KINDS

if TYPE_CHECKING:
    from sqlstress.experiments.app.ledger import Ledger

MAX_CONNECTIONS = 50
"""Maximum number of connections per process that are examined. Later connections are only counted."""
MAX_STATEMENTS = 200
"""Maximum number of statements per connection that are examined."""
READ = ("journal_mode", "synchronous", "busy_timeout", "foreign_keys", "wal_autocheckpoint")
"""PRAGMAs whose values are read as the settings of a connection."""
_SYNCHRONOUS = ("off", "normal", "full", "extra")

# A connection's statements show the ways in which its transactions begin, such as BEGIN IMMEDIATE.


_READS, _WRITES = ("SELECT", "VALUES", "WITH"), ("INSERT", "UPDATE", "DELETE", "REPLACE")
_WRITES_WITHIN = re.compile(rf"\b({'|'.join(_WRITES)})\b", re.IGNORECASE)
DEFERRED = "DEFERRED"
_HOW = (DEFERRED, "IMMEDIATE", "EXCLUSIVE")
_SETTING = re.compile(
    rf"{LEAD}(--|pragma\b|begin\b|savepoint\b|commit\b|rollback\b|attach\b)", re.IGNORECASE | re.DOTALL
)


class WriteTransactions:
    """Write transactions of a connection, as its statements show them."""

    def __init__(self) -> None:
        self.ways: dict[str, None] = {}
        """Ways in which transactions that wrote began, such as DEFERRED, in order of first occurrence."""
        self.locks: dict[str, None] = {}
        """Ways in which transactions began with the write lock: IMMEDIATE, EXCLUSIVE."""
        self.upgrades = 0
        """Number of transactions that began DEFERRED, read, and then wrote."""
        self.committed = False
        """Whether a transaction that wrote was committed."""
        self.is_known = False
        """Whether the settings were read at a commit, and no PRAGMA of the user ran since."""
        self._how = ""
        self._savepoint = ""
        """Name of the savepoint that began the transaction; empty if BEGIN began it."""
        self._has_read = self._has_written = False

    def add(self, sql: str) -> bool:
        """Handle a statement that is about to run. Return whether it commits written data."""
        word, second = words_of(sql)
        if word == "PRAGMA":
            self.is_known = False
        elif word == "BEGIN" or (word == "SAVEPOINT" and not self._how):
            self._how = second if second in _HOW else DEFERRED
            self._savepoint = _last_word(sql) if word == "SAVEPOINT" else ""
            if self._how != DEFERRED:
                self.locks[self._how] = None
            self._has_read = self._has_written = False
        elif (
            word in ("COMMIT", "END")
            or (word == "ROLLBACK" and second != "TO")
            or (word == "RELEASE" and _last_word(sql) == self._savepoint)
        ):
            commits = word != "ROLLBACK" and self._how != "" and self._has_written
            self._how = ""
            return commits
        elif word in _WRITES or (word == "WITH" and _WRITES_WITHIN.search(sql)):
            self.ways[self._how or SINGLE_STATEMENT] = None
            self.upgrades += self._how == DEFERRED and self._has_read and not self._has_written
            self._has_written = True
            return self._how == ""
        elif word in _READS:
            self._has_read = True
        return False


def _last_word(sql: str) -> str:
    return sql.rstrip("; \n").rpartition(" ")[2].upper()


# Watching this process's connections to database files.


class WatchedConnection:
    """Observed settings and transactions of a connection."""

    def __init__(self) -> None:
        self.opened_timeout_ms: int | None = None
        """Busy timeout just after `connect`, in ms; None if unknown."""
        self.isolation = ""
        """Python's mode of transaction control, such as "isolation_level=''" or "autocommit=True"."""
        self.file = ""
        """Path of the main database; empty for a database in memory."""
        self.answers: dict[str, str] = {}
        """Values of the PRAGMAs in READ, by name; empty until they are read."""
        self.shared: sqlite3.Connection | None = None
        """The connection, to read its settings after the load; None unless several threads use it."""
        self.works = False
        """Whether a statement ran that is more than a setting or transaction control (PRAGMA, BEGIN)."""
        self.watched = WHOLE
        """Examined statements: WHOLE, BEGINNING (the first ones), or THREADED (until threads shared it)."""
        self.begins = WriteTransactions()

    def look(self, connection: sqlite3.Connection) -> None:
        """Read the connection's settings, its file, and Python's mode of transaction control."""
        autocommit = getattr(connection, "autocommit", -1)
        self.isolation = (
            f"autocommit={autocommit}"
            if isinstance(autocommit, bool)
            else f"isolation_level={connection.isolation_level!r}"
        )
        self.file = _file_of(connection)
        self.answers = {name: str(_first_row(connection, f"PRAGMA {name}")[0]).lower() for name in READ}

    def look_at_last(self) -> None:
        """After the load, read the settings of a connection that threads shared, if no thread still runs."""
        if self.shared and not other_threads_running():
            with suppress(sqlite3.Error):  # The connection was closed.
                self.look(self.shared)

    def traits(self, file: str) -> dict[str, str]:
        """Return settings and observations as text, by name. `file` is the trial's database."""
        database = database_name(self.file, file)
        level = self.answers["synchronous"]
        return {
            "database": database,
            "journal_mode": self.answers["journal_mode"],
            "synchronous": _SYNCHRONOUS[int(level)] if level in ("0", "1", "2", "3") else level,
            "busy_timeout": self.answers["busy_timeout"],
            "opened_with": str(self.opened_timeout_ms),
            "foreign_keys": "on" if self.answers["foreign_keys"] == "1" else "off",
            "wal_autocheckpoint": self.answers["wal_autocheckpoint"],
            "python": self.isolation,
            "writes_begin": ", ".join(self.begins.ways),
            "upgrades": "yes" if self.begins.upgrades else "no",
            "committed": "yes" if self.begins.committed else "no",
            "watched": self.watched,
            "locks": ", ".join(self.begins.locks),
        }


class FileWatch:
    """Observer of this process's sqlite3 connections, by a permanent audit hook."""

    def __init__(self, file: str, ledger: Ledger | None = None) -> None:
        """`file` is the trial's database. `ledger` records the commits of connections to `file`."""
        self._file, self._ledger = file, ledger
        self._seen: list[WatchedConnection] = []
        self._others = 0
        """Number of connections beyond MAX_CONNECTIONS, which are not examined."""
        self._is_over = False
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event != "sqlite3.connect/handle" or self._is_over:
            return
        seen = WatchedConnection() if len(self._seen) < MAX_CONNECTIONS else None
        if seen:
            self._seen.append(seen)
        else:
            self._others += 1
        call_soon(lambda: self._follow_connection(args[0], seen))

    def _follow_connection(self, connection: sqlite3.Connection, seen: WatchedConnection | None) -> None:
        """Observe a new connection. `seen` stores observations; None means to record commits only."""
        followed = None
        if self._ledger and database_name(_file_of(connection), self._file) == HERE:
            followed = self._ledger.follow(connection)
        handle = _statement_handler(connection, seen) if seen else None

        def begins(sql: str) -> bool:
            wants_more = handle is not None and handle(sql)
            if followed:
                # Call `begins` last: after it, the ledger takes the next profile event for the COMMIT's end.
                followed.begins(sql)
            return wants_more or followed is not None

        def ends() -> None:
            if seen:
                seen.shared = connection
                seen.works, seen.watched = True, THREADED
            if followed:
                followed.count_shared()

        if handle or followed:
            Listener(connection, begins, ends)

    def sightings(self) -> list[PlainObservation]:
        """Return an observation for each kind of connection, and for connections without known settings."""
        kinds = Counter(tuple(traits.items()) for traits in self._traits())
        unread = sum(seen.works and not seen.answers for seen in self._seen)
        records: list[PlainObservation] = [
            (CONNECTION, "sqlite3", count, "", dict(traits)) for traits, count in kinds.most_common(MAX_KINDS)
        ]
        missing: list[PlainObservation] = [
            (UNSEEN, "sqlite3", self._others, "", {}),
            (UNREAD, "sqlite3", unread, "", {}),
        ]
        return records + [sighting for sighting in missing if sighting[2]]

    def effective(self) -> dict[str, str]:
        """Return the settings used for the trial's database. Different values: "1000 / 5000"."""
        traits_of = [traits for traits in self._traits() if is_trial_database(traits["database"])]
        here = [traits for traits in traits_of if traits["database"] == HERE] or traits_of
        # Prefer connections that committed, because only their settings matter for commits.
        here = [traits for traits in here if traits["committed"] == "yes"] or here
        names = ("journal_mode", "synchronous", "busy_timeout") if here else ()
        return {name: " / ".join(dict.fromkeys(traits[name] for traits in here)) for name in names}

    def _traits(self) -> list[dict[str, str]]:
        if not self._is_over:
            self._is_over = True
            for connection in self._seen:
                connection.look_at_last()
        return [connection.traits(self._file) for connection in self._seen if connection.answers]


def _statement_handler(connection: sqlite3.Connection, seen: WatchedConnection) -> Callable[[str], bool]:
    """Return a function that examines a statement, and returns False after MAX_STATEMENTS statements."""
    seen.opened_timeout_ms = _first_row(connection, "PRAGMA busy_timeout")[0]
    begins, numbers = seen.begins, count(1)

    def look(sql: str) -> bool:
        if next(numbers) > MAX_STATEMENTS:
            seen.watched = BEGINNING
            return False
        seen.works = seen.works or not _SETTING.match(sql)
        commits = begins.add(sql)
        begins.committed |= commits
        # Read the settings again at a commit: some libraries run a query before they change settings.
        if (commits and not begins.is_known) or (not seen.answers and not _SETTING.match(sql)):
            begins.is_known = commits
            with suppress(sqlite3.Error):
                seen.look(connection)
        return True

    return look


def _first_row(connection: sqlite3.Connection, sql: str) -> tuple[Any, ...]:
    cursor = sqlite3.Cursor(connection)
    cursor.row_factory = None
    return cursor.execute(sql).fetchone() or (None, None, None)


def _file_of(connection: sqlite3.Connection) -> str:
    # SELECT from pragma_database_list would start a read transaction. The main database comes first.
    return _first_row(connection, "PRAGMA database_list")[2] or ""


def database_name(name: str, file: str) -> str:
    """Return the name of a connection's database in observations. `name` is its path, `file` the trial's.

    The result is HERE for the trial's database, ":memory:" without a path, INSIDE and a relative path for
    another database in the trial's folder, or else the path.
    """
    if not name:
        return ":memory:"
    with suppress(OSError):  # The file does not exist.
        if Path(name).samefile(file):
            return HERE
    try:
        resolved, folder = Path(name).resolve(), Path(file).resolve().parent
    except OSError:
        return name
    return f"{INSIDE}{resolved.relative_to(folder).as_posix()}" if resolved.is_relative_to(folder) else name


# Observation of connections to PostgreSQL that are open after the load. Python has no hook for the C library
# that opens these connections.


NAMES = (*REPORTED, "statement_timeout")
_ASKED = (
    "SELECT pg_postmaster_start_time()::text, current_database(), coalesce(current_schema(), ''), "
    f"{', '.join(f'current_setting({name!r})' for name in NAMES)}"
)
_PLACE = ("server", "database", "schema")
_OF_SESSION = ("synchronous_commit", "transaction_isolation", "lock_timeout")
"""Settings in REPORTED that a session may change. Others apply to the whole server."""
_LEVELS = {1: "read uncommitted", 2: "read committed", 3: "repeatable read", 4: "serializable"}
"""Isolation levels by psycopg's `isolation_level`, which overrides the session's setting."""

Answers = dict[str, str]


class ServerWatch:
    """Reader of the settings of this process's psycopg connections, once after the load."""

    def __init__(self, address: str) -> None:
        """Connect, and read the settings of a new session. Raises EnvironmentFailure without a server."""
        from sqlstress.targets.postgres.own_schema import opened

        with opened(address, "cannot use the server") as connection:
            begins = _answers(connection)
        assert begins
        # The default of autocommit depends on the library, and the user's code may use another library.
        del begins["autocommit"]
        self._begins = begins

    def sightings(self) -> list[PlainObservation]:
        """Return an observation per kind of connection, or else one of a new session."""
        kinds = Counter(tuple(self._traits(session).items()) for session in self._sessions)
        seen: list[PlainObservation] = [
            (SESSION, "psycopg", count, "", dict(traits)) for traits, count in kinds.items()
        ]
        return seen or [(BEGINS, "psycopg", 1, "", self._traits(self._begins))]

    def effective(self) -> dict[str, str]:
        """Return the settings of the connections to the trial's schema, by name.

        If connections differ, " / " separates the values. If there are no connections, return the server's
        settings, without those that each session may change (_OF_SESSION).
        """
        here = [session for session in self._sessions if self._is_here(session)]
        if not here:
            return {name: self._begins[name] for name in REPORTED if name not in _OF_SESSION}
        return {name: " / ".join(dict.fromkeys(session[name] for session in here)) for name in REPORTED}

    @cached_property
    def _sessions(self) -> list[Answers]:
        return list(filter(None, map(_answers, open_connections())))

    def _is_here(self, answers: Answers) -> bool:
        return all(answers[name] == self._begins[name] for name in _PLACE)

    def _traits(self, answers: Answers) -> Answers:
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
    """Yield this process's open psycopg connections (Connection and AsyncConnection)."""
    import psycopg

    gc.unfreeze()  # get_objects() hides frozen objects: all that existed before the measurement.
    for candidate in gc.get_objects():
        # isinstance() would use the object's __class__, which a proxy of the user's code may override.
        if issubclass(type(candidate), psycopg.Connection | psycopg.AsyncConnection) and not candidate.closed:
            yield candidate


def _answers(connection: Any) -> Answers | None:
    """Return the settings of a connection; None if it cannot run a query now.

    The query uses psycopg's low-level connection, which neither begins a transaction nor applies the user's
    row factory. A failed transaction is rolled back first: the user's code no longer needs it.
    """
    from psycopg.pq import ExecStatus, TransactionStatus

    try:
        pg_connection = connection.pgconn
        if pg_connection.transaction_status == TransactionStatus.INERROR:
            pg_connection.exec_(b"ROLLBACK")
        if pg_connection.transaction_status not in (TransactionStatus.IDLE, TransactionStatus.INTRANS):
            return None
        result = pg_connection.exec_(_ASKED.encode())
        if result.status != ExecStatus.TUPLES_OK:
            return None
        names = (*_PLACE, *NAMES)
        values = [
            (result.get_value(0, column) or b"").decode(errors="replace") for column in range(len(names))
        ]
        answers = dict(zip(names, values, strict=True))
        if level := _LEVELS.get(connection.isolation_level or 0):
            answers["transaction_isolation"] = level
        return {**answers, "autocommit": "on" if connection.autocommit else "off"}
    except Exception:
        return None
