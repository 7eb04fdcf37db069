"""The schemas of the table of picks, by name, and the statements that fill it.

They are those of the experiment that this one repeats, in the order in which it came to them; see
docs/keys.md for what its text leaves open.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sqlstress.experiments.keys.experiment import Picks

NEW_ID = "new_id"
"""Name of the function that makes an identifier inside SQLite."""

_HAS_UNIXEPOCH = (3, 38)
_REFERENCE = "FOREIGN KEY ({0}) REFERENCES {0}s (id) ON DELETE CASCADE ON UPDATE NO ACTION"


class Schema(NamedTuple):
    """What a schema of the table of picks has."""

    created_at: bool
    """Whether there is a column with the time: an id of one's own can hold it."""
    key: str = ""
    """The table's constraint of its primary key, if it has one."""
    rowid: bool = True


SCHEMAS = {
    "id-rowid": Schema(created_at=False),
    "id-norowid": Schema(created_at=False, rowid=False),
    "pair-norowid": Schema(created_at=False, key="PRIMARY KEY (user, item)", rowid=False),
    "no-key": Schema(created_at=True),
    "pair-rowid": Schema(created_at=True, key="PRIMARY KEY (user, item)"),
}


def sql_type(picks: Picks) -> str:
    """Return the type of the columns that hold identifiers."""
    return "INTEGER" if picks.id_type == "int" else "BLOB"


def definitions(picks: Picks, sqlite_version: str) -> Iterator[str]:
    """Yield the statements that create the tables and the indices."""
    id_type = sql_type(picks)
    yield f"CREATE TABLE users (id {id_type} NOT NULL PRIMARY KEY, name TEXT NOT NULL)"
    yield f"CREATE TABLE items (id {id_type} NOT NULL PRIMARY KEY, title TEXT NOT NULL, released INT)"
    yield _table(picks, _now(sqlite_version))
    yield "CREATE INDEX picks_by_user ON picks (user)"
    yield "CREATE INDEX picks_by_item ON picks (item)"


def _table(picks: Picks, now: str) -> str:
    schema, id_type = SCHEMAS[picks.schema], sql_type(picks)
    parts = [
        *[f"id {id_type} NOT NULL PRIMARY KEY"] * picks.own_id,
        f"user {id_type} NOT NULL",
        f"item {id_type} NOT NULL",
        "priority INT",
        "public BOOLEAN NOT NULL DEFAULT true",
        "done BOOLEAN NOT NULL DEFAULT false",
        "when_done INT",
        *[f"created_at INT NOT NULL DEFAULT ({now})"] * schema.created_at,
        f"last_updated INT NOT NULL DEFAULT ({now})",
        _REFERENCE.format("user"),
        _REFERENCE.format("item"),
        *filter(None, [schema.key]),
    ]
    columns = ",\n    ".join(parts)
    return f"CREATE TABLE picks (\n    {columns}\n)" + " WITHOUT ROWID" * (not schema.rowid)


def as_inserted(picks: Picks, begin_s: int | None, end_s: int | None) -> str:
    """Return the condition that a pick's other columns hold what an insertion leaves in them.

    The times, in seconds since 1970, are those between which it was; None where no clock can tell.
    """
    parts = ["priority IS NULL", "public IS 1", "done IS 0", "when_done IS NULL"]
    parts += ["created_at IS last_updated"] * SCHEMAS[picks.schema].created_at
    if begin_s is None or end_s is None:
        parts.append("typeof(last_updated) = 'integer'")
    else:
        parts.append(f"last_updated BETWEEN {begin_s} AND {end_s}")
    return " AND ".join(parts)


def _now(sqlite_version: str) -> str:
    major, minor = map(int, sqlite_version.split(".")[:2])
    if (major, minor) >= _HAS_UNIXEPOCH:
        return "unixepoch()"
    return "CAST(strftime('%s', 'now') AS INT)"


def insertion(picks: Picks) -> str:
    """Return the statement that inserts a pick: its parameters are an id, if Python makes one, user, item."""
    if not picks.own_id:
        return "INSERT INTO picks (user, item) VALUES (?, ?)"
    own = "?" if picks.made_by == "python" else _made_inside(picks)
    return f"INSERT INTO picks (id, user, item) VALUES ({own}, ?, ?)"


def _made_inside(picks: Picks) -> str:
    if picks.id_type != "int":
        return f"{NEW_ID}()"
    # SQLite numbers rows by itself where the number is the rowid.
    return "NULL" if SCHEMAS[picks.schema].rowid else "(SELECT coalesce(max(id), 0) + 1 FROM picks)"
