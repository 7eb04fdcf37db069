"""The files of a store, as the parent handles them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.errors import Interrupted, UsageError
from sqlstress.experiments.kv.acks import COUNTERS
from sqlstress.report.case import Case, Settings
from sqlstress.system.interrupt import paced
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.integrity import integrity
from tests.pulses import Pulses, nothing
from tests.targets.filled import contents, create, create_file, table_of

ROWS = {number: 10 * number for number in range(200)}


@pytest.fixture
def first_path(case: Case, tmp_path: Path) -> Path:
    return files.paths(case, tmp_path)[0]


def wal_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def test_every_row_lies_in_the_file_that_it_was_made_for(case: Case, tmp_path: Path) -> None:
    create(case, tmp_path, ROWS)
    found = contents(case, tmp_path)
    assert len(found) == case.buckets
    assert sum(map(len, found)) == len(ROWS)
    assert {key: value for each in found for key, value in each.items()} == ROWS


@pytest.mark.parametrize("update_ratio", [0.0, 0.1])
def test_counters_are_there_only_for_cases_with_updates(
    case: Case, tmp_path: Path, update_ratio: float
) -> None:
    create(replace(case, spec=replace(case.spec, update_ratio=update_ratio)), tmp_path, {})
    tables = contents(case, tmp_path, "SELECT name, type FROM sqlite_schema")
    counter = {"counter": "table"} if update_ratio else {}
    assert tables == [{"kv": "table", **counter, "last_page": "table"}] * case.buckets
    if update_ratio:
        counters = contents(case, tmp_path, "SELECT id, n FROM counter")
        assert counters == [dict.fromkeys(range(COUNTERS), 0)] * case.buckets


@pytest.mark.parametrize(
    ("key_type", "value_size", "columns"),
    [
        ("int", 8, {"key": "INTEGER", "value": "INTEGER"}),
        ("text", 9, {"key": "TEXT", "value": "BLOB"}),
        ("blob", 100, {"key": "BLOB", "value": "BLOB"}),
    ],
)
def test_the_columns_have_the_types_of_the_case(
    case: Case, tmp_path: Path, key_type: str, value_size: int, columns: dict[str, str]
) -> None:
    create(replace(case, spec=replace(case.spec, key_type=key_type, value_size=value_size)), tmp_path, {})
    assert contents(case, tmp_path, "SELECT name, type FROM pragma_table_info('kv')")[0] == columns


def test_a_first_write_tells_the_settings_in_force(case: Case, tmp_path: Path, first_path: Path) -> None:
    case = replace(case, settings=Settings(synchronous="normal", wal_autocheckpoint=3, page_size=1024))
    create(case, tmp_path, ROWS)
    answers = files.first_write(case, first_path)
    assert (answers["synchronous"], answers["wal_autocheckpoint"]) == ("normal", "3")
    assert (answers["page_size"], answers["busy_timeout"]) == ("1024", "60000")


def test_a_file_that_somebody_has_open_for_a_moment_is_removed_after_it(
    case: Case, tmp_path: Path, first_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(case, tmp_path, ROWS)
    unlink, denied = Path.unlink, [True, True]

    def held(self: Path, missing_ok: bool = False) -> None:
        if denied and self == first_path:
            denied.pop()
            raise PermissionError(13, "used by another process")
        unlink(self, missing_ok)

    monkeypatch.setattr(Path, "unlink", held)
    monkeypatch.setattr("time.sleep", lambda _: None)
    files.remove(case, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_setting_that_was_not_taken_is_told_at_the_first_write(
    case: Case, tmp_path: Path, first_path: Path
) -> None:
    create(case, tmp_path, ROWS)
    refused = replace(case, settings=replace(case.settings, pragmas=(("temp_store", "memroy"),)))
    with pytest.raises(UsageError, match="asked for memroy"):
        files.first_write(refused, first_path)
    with pytest.raises(UsageError, match="asked for memroy"):
        table_of(refused, tmp_path).create(nothing)


@pytest.mark.parametrize(
    ("asked", "name", "answer"),
    [
        (Settings(page_size=8192), "page_size", "8192"),
        (Settings(pragmas=(("auto_vacuum", "full"),)), "auto_vacuum", "full"),
    ],
    ids=["page_size", "auto_vacuum"],
)
def test_what_shapes_a_file_is_set_when_it_is_created(
    case: Case, tmp_path: Path, first_path: Path, asked: Settings, name: str, answer: str
) -> None:
    case = replace(case, settings=asked)
    create(case, tmp_path, ROWS)
    assert files.first_write(case, first_path)[name] == answer


@pytest.mark.parametrize("frames", [0, 8, 100])
def test_the_wal_has_the_size_at_which_it_works_as_long_as_somebody_holds_it(
    case: Case, first_path: Path, frames: int
) -> None:
    case = replace(case, settings=replace(case.settings, wal_autocheckpoint=frames))
    wal = first_path.with_name(first_path.name + "-wal")
    holder = create_file(case, first_path, [])
    size = wal.stat().st_size
    assert size > frames * 4096
    holder.rows("PRAGMA user_version=2")
    assert wal.stat().st_size == size, "the next commit begins it anew"
    assert holder.rows("PRAGMA wal_checkpoint(PASSIVE)")[0][1] == 1
    holder.close()
    assert not wal.exists()


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_whoever_holds_a_file_locks_nobody_out(case: Case, first_path: Path, mode: str) -> None:
    case = replace(case, settings=replace(case.settings, journal_mode=mode))
    holder = create_file(case, first_path, [])
    with files.opened(case, first_path) as other:
        other.rows("BEGIN EXCLUSIVE")
        other.rows("INSERT INTO kv VALUES (1, 1)")
        other.rows("COMMIT")
        if mode == "wal":
            assert other.rows("PRAGMA wal_checkpoint(RESTART)")[0][0] == 0
    holder.close()


@pytest.mark.parametrize("mode", ["wal", "delete"])
@pytest.mark.parametrize("count", [99, 100, 101, 350])
def test_rows_are_written_piece_by_piece(
    case: Case, first_path: Path, mode: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_PIECE", 100 * 32)
    case = replace(case, settings=replace(case.settings, journal_mode=mode))
    holder = create_file(case, first_path, ((number, -number) for number in range(count)))
    assert holder.rows("SELECT key, value FROM kv") == [(number, -number) for number in range(count)]
    holder.close()


def test_no_wal_grows_long_while_millions_of_rows_are_written(
    case: Case, first_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_PIECE", 1000 * 32)
    holder = create_file(case, first_path, ((number, number) for number in range(20_000)))
    assert first_path.stat().st_size > 200_000
    assert wal_of(first_path).stat().st_size < 100_000
    holder.close()


def test_who_stops_while_rows_are_written_leaves_no_connection_behind(case: Case, first_path: Path) -> None:
    with pytest.raises(Interrupted):
        create_file(case, first_path, paced(ROWS.items(), Pulses(stop_at=1)))
    assert not wal_of(first_path).exists()
    with files.opened(case, first_path) as connection:
        assert connection.rows("SELECT count(*) FROM kv") == [(0,)]


ENDLESS = "WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up) SELECT max(n) FROM up"


def test_a_statement_that_takes_long_is_interrupted(case: Case, first_path: Path) -> None:
    pulses = Pulses(stop_at=3)
    with files.opened(case, first_path) as connection:
        with pytest.raises(Interrupted):
            files.watched(connection, ENDLESS, pulses)
        assert pulses.count == 3
        assert connection.rows("SELECT 1") == [(1,)]


def test_a_statement_that_fails_while_it_is_watched_says_why(case: Case, first_path: Path) -> None:
    with files.opened(case, first_path) as connection, pytest.raises(Exception, match="no such table"):
        files.watched(connection, "SELECT * FROM missing", nothing)


def test_a_sound_file_has_nothing_to_complain_of(case: Case, tmp_path: Path, first_path: Path) -> None:
    create(case, tmp_path, ROWS)
    assert integrity(case, first_path, "quick_check", nothing) == []
    assert integrity(case, first_path, "integrity_check", nothing) == []


@pytest.mark.parametrize("pragma", ["quick_check", "integrity_check"])
def test_a_damaged_page_is_complained_of(case: Case, first_path: Path, pragma: str) -> None:
    create_file(case, first_path, ROWS.items()).close()
    with files.opened(case, first_path) as connection:
        (root,) = connection.rows("SELECT rootpage FROM sqlite_schema WHERE name = 'kv'")[0]
    with first_path.open("r+b") as file:
        # The offset of the first free block of the table's root page, which leads nowhere now.
        file.seek((root - 1) * 4096 + 1)
        file.write(b"\xff\xff")
    assert integrity(case, first_path, pragma, nothing)


def test_remove_takes_all_of_its_own_files_and_nothing_else(
    case: Case, tmp_path: Path, first_path: Path
) -> None:
    other = tmp_path / "somebody-elses.db"
    other.touch()
    create(case, tmp_path, ROWS)
    for suffix in ("-wal", "-shm", "-journal"):
        first_path.with_name(first_path.name + suffix).touch()
    files.remove(case, tmp_path)
    assert list(tmp_path.iterdir()) == [other]
    files.remove(case, tmp_path)


def test_tables_are_created_together_with_the_settings_of_the_case(tmp_path: Path) -> None:
    case = Case(settings=Settings(journal_mode="delete", page_size=1024))
    path = files.paths(case, tmp_path)[0]
    files.create_tables(case, path, [f"CREATE TABLE t{number} (id INTEGER)" for number in range(3)])
    assert contents(case, tmp_path, "SELECT name, type FROM sqlite_schema") == [
        {"t0": "table", "t1": "table", "t2": "table"}
    ]
    with files.opened(case, path) as connection:
        assert connection.rows("PRAGMA page_size") == [(1024,)]


def test_no_table_is_left_when_one_of_them_cannot_be_created(case: Case, first_path: Path) -> None:
    with pytest.raises(Exception, match="syntax error"):
        files.create_tables(case, first_path, ["CREATE TABLE t (id INTEGER)", "CREATE TABEL u (id INTEGER)"])
    with files.opened(case, first_path) as connection:
        assert connection.rows("SELECT name FROM sqlite_schema") == []
