"""The tables of a trial as they were when they had been prepared, and what was done to them since.

What a stranger writes into a table is for the proof to find. Here is what the proof can't see: a server that
was started anew, a table that is another one now, one that somebody has locked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlstress.system.pulse import Pulse
from sqlstress.targets.place import MEANWHILE, Disturbance

if TYPE_CHECKING:
    from sqlstress.targets.postgres.place import PostgresPlace

_STARTED = "SELECT pg_postmaster_start_time()"
_TABLES = (
    "SELECT relname, oid::bigint, relfilenode::bigint FROM pg_class "
    "WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r'"
)
_LOCKED = (
    "SELECT relname, pid FROM pg_locks JOIN pg_class ON pg_class.oid = relation "
    "WHERE relnamespace = to_regnamespace(%s) AND granted AND pid <> pg_backend_pid() "
    "AND mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock') LIMIT 1"
)


class Marks(NamedTuple):
    """What no worker changes."""

    started: str
    """When the server was."""
    tables: dict[str, tuple[int, int]]
    """By name: which table it is, and which file it lies in."""


class PostgresSnapshot:
    """The server and the tables."""

    def __init__(self, place: PostgresPlace, pulse: Pulse) -> None:
        self._place = place
        self._before = self._marks(pulse)

    def exchanged(self) -> None:
        """Return nothing: that a table is another one is told by `changed`, for workers may do that too."""

    def changed(self, pulse: Pulse) -> Disturbance | None:
        now = self._marks(pulse)
        for name, before in self._before.tables.items():
            if now.tables.get(name) != before:
                how = "replaced by another table" if name in now.tables else "dropped"
                return Disturbance(f"{name} was {how} {MEANWHILE}", "failed")
        if now.started != self._before.started:
            return Disturbance(f"the server was started anew {MEANWHILE}")
        with self._place.read(pulse) as connection:
            row = connection.execute(_LOCKED, (self._place.name,)).fetchone()
        if row:
            return Disturbance(
                f"{row[0]} is locked by another program, the server's process {row[1]}: "
                "end it and measure again",
                "unknown",
            )
        return None

    def _marks(self, pulse: Pulse) -> Marks:
        with self._place.read(pulse) as connection:
            row = connection.execute(_STARTED).fetchone()
            tables = connection.execute(_TABLES, (self._place.name,)).fetchall()
        return Marks(str(row and row[0]), {name: (oid, file) for name, oid, file in tables})
