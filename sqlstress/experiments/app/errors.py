"""What a transaction raised: told by what SQLite said below the wrappers, and counted by kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sqlstress.errors import said
from sqlstress.targets.sqlite.drivers import codes

DEEPEST = 10
"""Exceptions within each other that are looked at."""
MOST = 20
"""Kinds that are kept apart."""
_WIDEST = 160


class Kind(NamedTuple):
    """Exceptions that are counted together."""

    transaction: str
    said: str
    """SQLite's name for it, such as SQLITE_BUSY; of one that isn't SQLite's, the name of its class."""
    raised: str
    """The class that the transaction raised."""


class Errors:
    """The exceptions of one process."""

    def __init__(self) -> None:
        self.busy = self.busy_snapshot = 0
        self._counts: dict[Kind, int] = {}
        self._examples: dict[Kind, str] = {}

    def add(self, transaction: str, error: BaseException) -> None:
        """Count an exception."""
        code, name = code_of(error), name_of(error)
        self.busy_snapshot += code == codes.BUSY_SNAPSHOT
        self.busy += codes.is_busy(code) and code != codes.BUSY_SNAPSHOT
        kind = Kind(transaction, name, _class(error))
        if kind not in self._counts and len(self._counts) >= MOST:
            kind = Kind("", "others", "")
        self._counts[kind] = self._counts.get(kind, 0) + 1
        self._examples.setdefault(kind, " ".join(_text(error).split())[:_WIDEST])

    def counted(self) -> Iterator[tuple[Kind, int, str]]:
        """Yield each kind, how often it was raised, and what the first one said."""
        for kind, count in self._counts.items():
            yield kind, count, self._examples[kind]


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


def name_of(error: BaseException) -> str:
    """Return SQLite's name for an exception; of one that isn't SQLite's, the name of its class."""
    code = code_of(error)
    if code is None:
        return _class(error)
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
