"""What went wrong in a process, counted by kind: what its transactions raised, and what none raised.

An exception is told by what the database said below the wrappers.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

from sqlstress.errors import said
from sqlstress.experiments.app import EXCEPTION, LOGGED, THREAD_RAISED
from sqlstress.targets.postgres import dialect as server
from sqlstress.targets.sqlite.drivers import codes
from sqlstress.user_work.messages import OTHERS, kind_of
from sqlstress.user_work.source import Kinds, Plain

DEEPEST = 10
"""Exceptions within each other that are looked at."""
_WIDEST = 160
_SQLSTATE = re.compile(r"[0-9A-Z]{5}")


class Errors:
    """The exceptions of one process, by transaction, what they are called, and the class that was raised."""

    def __init__(self, hidden: Callable[[str], str] = str) -> None:
        """`hidden` takes out of a text what may not be shown."""
        self._hidden = hidden
        self.busy = self.busy_snapshot = 0
        self._kinds = Kinds(("", "others", ""))

    def add(self, transaction: str, error: BaseException) -> None:
        """Count an exception."""
        code, state = code_of(error), _sqlstate_of(error)
        is_snapshot = code == codes.BUSY_SNAPSHOT or state == server.SERIALIZATION_FAILURE
        self.busy_snapshot += is_snapshot
        self.busy += (codes.is_busy(code) or state in server.BUSY) and not is_snapshot
        kind = (transaction, name_of(error), class_of(error))
        self._kinds.add(kind, line(lambda: said(error), self._hidden))

    def sightings(self) -> list[Plain]:
        """Return each kind once, with how often it was raised, and what the first one said."""
        examples = self._kinds.examples
        return [
            (EXCEPTION, kind[1], count, examples[kind], {"transaction": kind[0], "raised": kind[2]})
            for kind, count in self._kinds.counts.items()
        ]


def line(text: Callable[[], str], hidden: Callable[[str], str]) -> str:
    """Return a text that may not be there to be had, in a line without what may not be shown."""
    try:
        found = text()
    except Exception:  # its own __str__ may raise
        found = "(it can't be written)"
    return " ".join(hidden(found).split())[:_WIDEST]


def _values(error: BaseException, *names: str) -> Iterator[Any]:
    """Yield what an exception has under these names, and then what those have that it wraps."""
    layer: BaseException | None = error
    for _ in range(DEEPEST):
        if layer is None:
            return
        yield from (getattr(layer, name, None) for name in names)
        inner = getattr(layer, "orig", None)  # SQLAlchemy and Peewee
        layer = inner if isinstance(inner, BaseException) else layer.__cause__ or layer.__context__


def code_of(error: BaseException) -> int | None:
    """Return SQLite's (extended) result code of an exception, or of one that it wraps; None without one."""
    values = _values(error, "sqlite_errorcode", "extendedresult")  # the standard library's, APSW's
    return next((code for code in values if isinstance(code, int)), None)


def _sqlstate_of(error: BaseException) -> str | None:
    values = _values(error, "sqlstate", "pgcode")  # psycopg's and asyncpg's, psycopg2's
    return next((state for state in values if isinstance(state, str) and _SQLSTATE.fullmatch(state)), None)


def name_of(error: BaseException) -> str:
    """Return the database's name for an exception; of one that isn't a database's, the name of its class."""
    code = code_of(error)
    if code is None:
        state = _sqlstate_of(error)
        return f"SQLSTATE {state}" if state else class_of(error)
    names = _values(error, "sqlite_errorname")
    return next((name for name in names if isinstance(name, str)), codes.name(code))


def class_of(error: BaseException) -> str:
    """Return the name of an exception's class."""
    own = type(error)
    return own.__qualname__ if own.__module__ == "builtins" else f"{own.__module__}.{own.__qualname__}"


class Unraised:
    """What went wrong in one process without a transaction that raised it."""

    def __init__(self, hidden: Callable[[str], str] = str) -> None:
        self._hidden = hidden
        self._threads, self._records = Kinds(("", OTHERS)), Kinds(("", OTHERS))

    def watch(self) -> None:
        """See exceptions that end threads, and records logged at ERROR, from now on. There is no way back."""
        before, make = threading.excepthook, logging.getLogRecordFactory()

        def of_thread(args: threading.ExceptHookArgs) -> None:
            if args.exc_value and not isinstance(args.exc_value, SystemExit):
                self._add_exception(args.exc_value)
            before(args)

        # No handler: with one, logging.basicConfig would do nothing for the user's code.
        def record(*args: Any, **known: Any) -> logging.LogRecord:
            made = make(*args, **known)
            if made.levelno >= logging.ERROR:
                text = line(made.getMessage, self._hidden)
                self._records.add((made.name, kind_of(text)), text)
            return made

        threading.excepthook = of_thread
        logging.setLogRecordFactory(record)

    def _add_exception(self, error: BaseException) -> None:
        self._threads.add((name_of(error), class_of(error)), line(lambda: said(error), self._hidden))

    def sightings(self) -> list[Plain]:
        """Return each kind once, with how often it came, and what the first one said."""
        threads, records = self._threads, self._records
        return [
            *(
                (THREAD_RAISED, what, count, threads.examples[what, raised], {"raised": raised})
                for (what, raised), count in threads.counts.items()
            ),
            *(
                (LOGGED, kind, count, records.examples[name, kind], {"logger": name})
                for (name, kind), count in records.counts.items()
            ),
        ]
