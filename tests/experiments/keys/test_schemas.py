"""The tables of the experiment are what docs/keys.md says they are."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from sqlstress.experiments.keys import schemas
from sqlstress.experiments.keys.experiment import ID_TYPES, SCHEMAS, Picks

COMMON = ["user", "item", "priority", "public", "done", "when_done", "last_updated"]
VERSION = sqlite3.sqlite_version
NOW = "CAST(strftime('%s', 'now') AS INT)"


def created(picks: Picks, version: str = VERSION) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    for statement in schemas.definitions(picks, version):
        connection.execute(statement)
    return connection


def indices(connection: sqlite3.Connection) -> dict[str, str]:
    """Return where the indices of the table of picks come from: c (CREATE INDEX) or pk, by their columns."""
    found = {}
    for _, name, _, origin, _ in connection.execute("PRAGMA index_list(picks)"):
        columns = [row[2] for row in connection.execute(f"PRAGMA index_info({name})")]
        found[", ".join(columns)] = origin
    return found


@pytest.mark.parametrize("id_type", ["int", "uuid4"])
@pytest.mark.parametrize(
    ("schema", "more", "key", "rowid"),
    [
        ("id-rowid", ["id"], "id", True),
        ("id-norowid", ["id"], "id", False),
        ("pair-norowid", [], "user, item", False),
        ("no-key", ["created_at"], None, True),
        ("pair-rowid", ["created_at"], "user, item", True),
    ],
)
def test_each_schema_has_its_columns_its_key_and_two_indices(
    schema: str, more: list[str], key: str | None, rowid: bool, id_type: str
) -> None:
    with closing(created(Picks(schema, id_type))) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(picks)")]
        assert sorted(columns) == sorted([*COMMON, *more])
        own = dict.fromkeys(["user", "item"], "c")
        if key and not (rowid and key == "id" and id_type == "int"):
            own[key] = "pk"  # an integer key of a table with rowids is the rowid
        assert indices(connection) == own
        text = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'picks'").fetchone()[0]
        assert text.endswith("WITHOUT ROWID") != rowid
        keys = {row[2:5] for row in connection.execute("PRAGMA foreign_key_list(picks)")}
        assert keys == {("users", "user", "id"), ("items", "item", "id")}


def test_all_schemas_of_the_experiment_are_there() -> None:
    assert tuple(schemas.SCHEMAS) == SCHEMAS


@pytest.mark.parametrize("id_type", ID_TYPES)
@pytest.mark.parametrize("made_by", ["python", "sqlite"])
@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_pick_is_inserted_with_the_values_that_it_has_by_default(
    schema: str, made_by: str, id_type: str
) -> None:
    picks = Picks(schema, id_type, made_by)
    sql = schemas.insertion(picks)
    with closing(created(picks)) as connection:
        connection.create_function(schemas.NEW_ID, 0, lambda: b"made inside")
        for number in (1, 2) if id_type == "int" else (1,):
            connection.execute(sql, (*[number] * (sql.count("?") - 2), 10 + number, 20))
        rows = connection.execute("SELECT user, item, public, done, priority, when_done FROM picks")
        assert next(rows) == (11, 20, 1, 0, None, None)
        (age,) = connection.execute(f"SELECT {NOW} - last_updated FROM picks").fetchone()
        assert 0 <= age < 60
        if picks.own_id:
            made = [row[0] for row in connection.execute("SELECT id FROM picks ORDER BY id")]
            inside = [b"made inside"] if made_by == "sqlite" else [1]
            assert made == ([1, 2] if id_type == "int" else inside)


def test_a_library_without_unixepoch_gets_the_same_time() -> None:
    picks = Picks("no-key", "int")
    assert "unixepoch" not in " ".join(schemas.definitions(picks, "3.37.2"))
    assert "unixepoch" in " ".join(schemas.definitions(picks, "3.38.0"))
    with closing(created(picks, "3.37.2")) as connection:
        connection.execute(schemas.insertion(picks), (1, 2))
        found = connection.execute(f"SELECT typeof(created_at), {NOW} - created_at < 60 FROM picks")
        assert found.fetchone() == ("integer", 1)
