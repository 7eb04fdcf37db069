"""Names and methods of the subclasses that replace sqlite3's and apsw's classes."""

from __future__ import annotations

from typing import Any

STATEMENTS = ("execute", "executemany", "executescript")
"""Methods of sqlite3's connections and cursors that run statements."""


def named_like(subclass: Any, base: Any) -> Any:
    """Give a subclass the name of its base, which the user's code may print. Return the subclass."""
    subclass.__name__, subclass.__qualname__ = base.__name__, base.__qualname__
    subclass.__module__ = base.__module__
    return subclass
