"""What a transaction raised: told by what the database said below the wrappers, and counted by kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from sqlstress.errors import said
from sqlstress.experiments.app.topics import EXCEPTION
from sqlstress.targets.postgres import errors as server
from sqlstress.targets.sqlite.drivers import codes

DEEPEST = 10
"""Exceptions within each other that are looked at."""
MOST = 20
"""Kinds that are kept apart."""
_WIDEST = 160
_SQLSTATE = re.compile(r"[0-9A-Z]{5}")

Plain = tuple[str, str, int, str, dict[str, str]]
"""What a worker tells of: topic, what, count, example, traits."""


class Kind(NamedTuple):
    """Exceptions that are counted together."""

    transaction: str
    said: str
    """SQLite's name for it, such as SQLITE_BUSY, or the SQLSTATE of a server; else the name of its class."""
    raised: str
    """The class that the transaction raised."""


class Errors:
    """The exceptions of one process."""

    def __init__(self, hidden: Callable[[str], str] = str) -> None:
        """`hidden` takes out of a text what may not be shown."""
        self._hidden = hidden
        self.busy = self.busy_snapshot = 0
        self._counts: dict[Kind, int] = {}
        self._examples: dict[Kind, str] = {}

    def add(self, transaction: str, error: BaseException) -> None:
        """Count an exception."""
        code, name = code_of(error), name_of(error)
        state = sqlstate_of(error)
        is_snapshot = code == codes.BUSY_SNAPSHOT or state == server.SERIALIZATION_FAILURE
        self.busy_snapshot += is_snapshot
        self.busy += (codes.is_busy(code) or state in server.BUSY) and not is_snapshot
        kind = Kind(transaction, name, _class(error))
        if kind not in self._counts and len(self._counts) >= MOST:
            kind = Kind("", "others", "")
        self._counts[kind] = self._counts.get(kind, 0) + 1
        self._examples.setdefault(kind, " ".join(self._hidden(_text(error)).split())[:_WIDEST])

    def sightings(self) -> list[Plain]:
        """Return each kind once, with how often it was raised, and what the first one said."""
        return [
            (
                EXCEPTION,
                one.said,
                count,
                self._examples[one],
                {"transaction": one.transaction, "raised": one.raised},
            )
            for one, count in self._counts.items()
        ]


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and what it wraps, from the outside in."""
    found: BaseException | None = error
    for _ in range(DEEPEST):
        if found is None:
            return
        yield found
        inner = getattr(found, "orig", None)  # SQLAlchemy and Peewee
        found = inner if isinstance(inner, BaseException) else found.__cause__ or found.__context__


def code_of(error: BaseException) -> int | None:
    """Return SQLite's (extended) result code of an exception, or of one that it wraps; None without one."""
    for one in chain(error):
        for name in ("sqlite_errorcode", "extendedresult"):  # the standard library's, APSW's
            if isinstance(code := getattr(one, name, None), int):
                return code
    return None


def sqlstate_of(error: BaseException) -> str | None:
    """Return the SQLSTATE of an exception, or of one that it wraps; None without one."""
    for one in chain(error):
        for name in ("sqlstate", "pgcode"):  # psycopg's and asyncpg's, psycopg2's
            code = getattr(one, name, None)
            if isinstance(code, str) and _SQLSTATE.fullmatch(code):
                return code
    return None


def name_of(error: BaseException) -> str:
    """Return the database's name for an exception; of one that isn't a database's, the name of its class."""
    code = code_of(error)
    if code is None:
        state = sqlstate_of(error)
        return f"SQLSTATE {state}" if state else _class(error)
    names = (getattr(one, "sqlite_errorname", None) for one in chain(error))
    return next((name for name in names if isinstance(name, str)), codes.name(code))


def _class(error: BaseException) -> str:
    own = type(error)
    return own.__qualname__ if own.__module__ == "builtins" else f"{own.__module__}.{own.__qualname__}"


def _text(error: BaseException) -> str:
    try:
        return said(error)
    except Exception:  # its own __str__ may raise
        return "(it can't be written)"
