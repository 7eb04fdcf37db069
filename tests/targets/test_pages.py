"""dbstat and our own walk agree on every b-tree, for files of every shape."""

from __future__ import annotations

import random
import sqlite3
import sys
import tempfile
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstress.experiments.classics.spec import SCHEMAS
from tests.drawing import examples
from tests.targets.both_ways import agreed, needs_dbstat
from tests.targets.databases import (
    FILL,
    ID_TYPES,
    TABLES,
    check,
    create,
    create_picks,
    create_reserved,
    free_up_to,
)

pytestmark = needs_dbstat

PAGE_SIZES = [1 << power for power in range(9, 17)]
LARGEST = PAGE_SIZES[-1]


def count(path: Path, pragma: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


@pytest.mark.parametrize("page_size", [512, 4096])
@pytest.mark.parametrize("id_type", ID_TYPES)
@pytest.mark.parametrize("schema", SCHEMAS)
def test_walk_agrees_with_dbstat_on_every_schema_of_picks(
    path: Path, schema: str, id_type: str, page_size: int
) -> None:
    create_picks(path, schema, id_type, [f"page_size={page_size}"])
    spaces = agreed(path)
    for tree in ("picks", "picks_by_user", "picks_by_item"):
        assert spaces[tree].leaf_pages > spaces[tree].internal_pages > 0


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_walk_agrees_with_dbstat_on_entries_that_overflow(path: Path, page_size: int, table: str) -> None:
    most = (page_size - 35, (page_size - 12) * 64 // 255 - 23)
    least = (page_size - 12) * 32 // 255 - 23
    limits = [*most, *(limit + page_size - 4 for limit in (*most, least))]
    sizes = sorted({size for limit in limits for size in range(limit - 15, limit + 5)})
    draw = random.Random(page_size)
    create(path, table, pragmas=[f"page_size={page_size}"])
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany(
            "INSERT INTO t VALUES (?, ?)", ((size, draw.randbytes(size)) for size in sizes)
        )
        connection.commit()
    assert agreed(path)["t"].entries == len(sizes)


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_walk_agrees_with_dbstat_on_an_empty_page(path: Path, page_size: int) -> None:
    create(path, TABLES["with rowid"], pragmas=[f"page_size={page_size}"])
    assert (agreed(path)["t"].pages, agreed(path)["t"].entries) == (1, 0)


@pytest.mark.parametrize("auto_vacuum", ["none", "full", "incremental"])
@pytest.mark.parametrize("page_size", [512, 4096])
def test_walk_agrees_with_dbstat_after_deletes(path: Path, page_size: int, auto_vacuum: str) -> None:
    create(
        path,
        *(TABLES["with an index"], FILL.format(rows=900, size=3), "DELETE FROM t WHERE a % 5"),
        pragmas=[f"page_size={page_size}", f"auto_vacuum={auto_vacuum}"],
    )
    assert agreed(path)["t"].entries == 900 // 5
    assert (count(path, "freelist_count") == 0) == (auto_vacuum == "full")


def test_walk_agrees_with_dbstat_on_a_free_list_of_several_trunks(path: Path) -> None:
    create(
        path, TABLES["with rowid"], FILL.format(rows=60, size=100), "DELETE FROM t", pragmas=["page_size=512"]
    )
    agreed(path)
    assert count(path, "freelist_count") > 2 * 512 // 4


@pytest.mark.parametrize(
    ("page_size", "reserved"),
    # SQLite needs 480 bytes of a page.
    [case for case in product((512, 1024, LARGEST), (1, 12, 32, 255)) if case[0] - case[1] >= 480],
)
def test_walk_agrees_with_dbstat_on_reserved_bytes(path: Path, page_size: int, reserved: int) -> None:
    create_reserved(path, page_size, reserved)
    create(path, TABLES["with an index"], FILL.format(rows=40, size=page_size // 8), "CREATE TABLE u (a)")
    assert agreed(path)["t"].entries == 40


@pytest.mark.skipif(sys.platform == "win32", reason="a file of a gigabyte takes a gigabyte there")
def test_walk_agrees_with_dbstat_beyond_the_lock_byte_page(path: Path) -> None:
    lock_page, page_count = (1 << 30) // LARGEST + 1, (1 << 30) // LARGEST + 20
    create(path, TABLES["with rowid"], pragmas=[f"page_size={LARGEST}"])
    free_up_to(path, page_count, lock_page, per_trunk=9_000)
    with closing(sqlite3.connect(path)) as connection:
        check(connection)
        blob = f"zeroblob({LARGEST // 2})"
        connection.executemany(f"INSERT INTO t VALUES (?, {blob})", ((number,) for number in range(30)))
        connection.commit()
        check(connection)
    assert agreed(path)["t"].leaf_pages == 30
    path.unlink()


KEYS = (
    *("(a, b)", "(a INTEGER PRIMARY KEY, b)", "(a PRIMARY KEY, b)", "(a PRIMARY KEY, b) WITHOUT ROWID"),
    *("(a, b, PRIMARY KEY (b, a))", "(a, b, PRIMARY KEY (b, a)) WITHOUT ROWID"),
)
VALUES = ("zeroblob({size})", "printf('%.*c', {size}, 'x')", "{size}")


@st.composite
def scripts(draw: st.DrawFn) -> list[str]:
    """Statements that create tables, insert rows of various sizes, and delete some of them."""
    page_size = draw(st.sampled_from(PAGE_SIZES))
    script = [
        f"PRAGMA page_size={page_size}",
        f"PRAGMA auto_vacuum={draw(st.sampled_from(('none', 'full', 'incremental')))}",
        f"PRAGMA encoding='{draw(st.sampled_from(('UTF-8', 'UTF-16le')))}'",
    ]
    sizes = st.integers(0, page_size // 4) | st.integers(0, 3 * page_size)
    for table in draw(st.sampled_from((["t"], ["t", "u"], ["t", "u", "v"]))):
        script.append(f"CREATE TABLE {table} {draw(st.sampled_from(KEYS))}")
        for columns in draw(st.sets(st.sampled_from(("a", "b", "b, a")))):
            script.append(f'CREATE INDEX "{table} {columns}" ON {table} ({columns})')
        for part in range(draw(st.integers(0, 3))):
            value = draw(st.sampled_from(VALUES)).format(size=draw(sizes))
            script.append(
                "WITH RECURSIVE n (i) AS "
                f"(SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {draw(st.integers(0, 60))}) "
                f"INSERT INTO {table} SELECT i * 1000 + {part}, {value} FROM n"
            )
        script.append(f"DELETE FROM {table} WHERE a % {draw(st.integers(1, 9))} = 1")
    return script + draw(st.sampled_from(([], ["DROP TABLE t"], ["PRAGMA incremental_vacuum(3)"])))


@pytest.mark.thorough
@settings(max_examples=examples(1.5))
@given(scripts())
def test_walk_agrees_with_dbstat_on_any_database(script: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "some.db"
        create(path, *script)
        agreed(path)
