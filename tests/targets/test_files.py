"""The files of a store in the parent process."""

from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.errors import Interrupted
from sqlstress.experiments.kv.acks import COUNTERS
from sqlstress.report.case import Case, Settings
from sqlstress.system.interrupt import with_pulses
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.integrity import integrity
from tests.pulses import Pulses, nothing
from tests.targets.filled import contents, create, create_file

ROWS = {number: 10 * number for number in range(200)}


@pytest.fixture
def first_path(case: Case, tmp_path: Path) -> Path:
    return files.paths(case, tmp_path)[0]


@pytest.mark.parametrize(
    ("key_type", "value_size", "columns", "update_ratio"),
    [
        ("int", 8, {"key": "INTEGER", "value": "INTEGER"}, 0.1),
        ("text", 9, {"key": "TEXT", "value": "BLOB"}, 0.0),
        ("blob", 100, {"key": "BLOB", "value": "BLOB"}, 0.1),
    ],
)
def test_columns_have_the_cases_types_and_counters_need_updates(
    case: Case, tmp_path: Path, key_type: str, value_size: int, columns: dict[str, str], update_ratio: float
) -> None:
    load = replace(case.spec, key_type=key_type, value_size=value_size, update_ratio=update_ratio)
    create(replace(case, spec=load), tmp_path, {})
    assert contents(case, tmp_path, "SELECT name, type FROM pragma_table_info('kv')")[0] == columns
    tables = contents(case, tmp_path, "SELECT name, type FROM sqlite_schema")
    counter = {"counter": "table"} if update_ratio else {}
    assert tables == [{"kv": "table", **counter, "last_page": "table"}] * case.buckets
    if update_ratio:
        counters = contents(case, tmp_path, "SELECT id, n FROM counter")
        assert counters == [dict.fromkeys(range(COUNTERS), 0)] * case.buckets


def test_first_write_returns_the_effective_settings(case: Case, tmp_path: Path, first_path: Path) -> None:
    shaped = Settings(
        synchronous="normal", wal_autocheckpoint=3, page_size=1024, pragmas=(("auto_vacuum", "full"),)
    )
    case = replace(case, settings=shaped)
    create(case, tmp_path, ROWS)
    assert files.first_write(case, first_path).items() >= {
        ("synchronous", "normal"),
        ("wal_autocheckpoint", "3"),
        ("page_size", "1024"),
        ("auto_vacuum", "full"),
        ("busy_timeout", "60000"),
    }


def test_file_open_for_a_moment_is_removed_afterwards(
    case: Case, tmp_path: Path, first_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(case, tmp_path, ROWS)
    unlink, denied = Path.unlink, [True, True]

    def unlink_later(self: Path, missing_ok: bool = False) -> None:
        if denied and self == first_path:
            denied.pop()
            raise PermissionError(13, "used by another process")
        unlink(self, missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink_later)
    monkeypatch.setattr("time.sleep", lambda _: None)
    files.remove(files.paths(case, tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("frames", [0, 8, 100])
def test_held_wal_is_preallocated_to_its_working_size(case: Case, first_path: Path, frames: int) -> None:
    case = replace(case, settings=replace(case.settings, wal_autocheckpoint=frames))
    wal = first_path.with_name(first_path.name + "-wal")
    holder = create_file(case, first_path, [])
    size = wal.stat().st_size
    assert size > frames * 4096
    holder.rows("PRAGMA user_version=2")
    assert wal.stat().st_size == size, "the next commit restarts it"
    assert holder.rows("PRAGMA wal_checkpoint(PASSIVE)")[0][1] == 1
    holder.close()
    assert not wal.exists()


@pytest.mark.parametrize("mode", ["wal", "delete"])
@pytest.mark.parametrize("count", [100, 101, 350])
def test_rows_are_written_in_pieces_and_the_holder_blocks_no_lock(
    case: Case, first_path: Path, mode: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_TRANSACTION_BYTES", 100 * 32)
    case = replace(case, settings=replace(case.settings, journal_mode=mode))
    holder = create_file(case, first_path, ((number, -number) for number in range(count)))
    assert holder.rows("SELECT key, value FROM kv") == [(number, -number) for number in range(count)]
    with files.opened(case, first_path) as other:
        for sql in ("BEGIN EXCLUSIVE", "INSERT INTO kv VALUES (1000, 1)", "COMMIT"):
            other.rows(sql)
        if mode == "wal":
            assert other.rows("PRAGMA wal_checkpoint(RESTART)")[0][0] == 0
    holder.close()


def test_wal_stays_short_while_many_rows_are_written(
    case: Case, first_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_TRANSACTION_BYTES", 1000 * 32)
    holder = create_file(case, first_path, ((number, number) for number in range(20_000)))
    assert first_path.stat().st_size > 200_000
    assert first_path.with_name(first_path.name + "-wal").stat().st_size < 100_000
    holder.close()


def test_interrupted_fill_leaves_no_connection_open(case: Case, first_path: Path) -> None:
    with pytest.raises(Interrupted):
        create_file(case, first_path, with_pulses(ROWS.items(), Pulses(stop_at=1)))
    assert not first_path.with_name(first_path.name + "-wal").exists()
    with files.opened(case, first_path) as connection:
        assert connection.rows("SELECT count(*) FROM kv") == [(0,)]


ENDLESS = "WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up) SELECT max(n) FROM up"


def test_long_statement_is_interruptible_and_errors_are_raised(case: Case, first_path: Path) -> None:
    pulses = Pulses(stop_at=3)
    with files.opened(case, first_path) as connection:
        with pytest.raises(Interrupted):
            files.watched(connection, ENDLESS, pulses)
        assert pulses.count == 3
        assert connection.rows("SELECT 1") == [(1,)]
        with pytest.raises(Exception, match="no such table"):
            files.watched(connection, "SELECT * FROM missing", nothing)


@pytest.mark.parametrize("pragma", ["quick_check", "integrity_check"])
def test_damaged_page_fails_the_integrity_check(case: Case, first_path: Path, pragma: str) -> None:
    create_file(case, first_path, ROWS.items()).close()
    with files.opened(case, first_path) as connection:
        (root,) = connection.rows("SELECT rootpage FROM sqlite_schema WHERE name = 'kv'")[0]
    with first_path.open("r+b") as file:
        # Make the offset of the first free block in the table's root page invalid.
        file.seek((root - 1) * 4096 + 1)
        file.write(b"\xff\xff")
    assert integrity(case, first_path, pragma, nothing)


def test_remove_deletes_all_files_of_the_case_and_no_others(
    case: Case, tmp_path: Path, first_path: Path
) -> None:
    other = tmp_path / "somebody-elses.db"
    other.touch()
    create(case, tmp_path, ROWS)
    for suffix in ("-wal", "-shm", "-journal"):
        first_path.with_name(first_path.name + suffix).touch()
    files.remove(files.paths(case, tmp_path))
    assert list(tmp_path.iterdir()) == [other]
    files.remove(files.paths(case, tmp_path))


def test_tables_are_created_with_the_settings_of_the_case_all_or_none(tmp_path: Path) -> None:
    case = Case(settings=Settings(journal_mode="delete", page_size=1024))
    path = files.paths(case, tmp_path)[0]
    with pytest.raises(Exception, match="syntax error"):
        files.create_tables(case, path, ["CREATE TABLE t (id INTEGER)", "CREATE TABEL u (id INTEGER)"])
    assert contents(case, tmp_path, "SELECT name, type FROM sqlite_schema") == [{}]
    files.create_tables(case, path, [f"CREATE TABLE t{number} (id INTEGER)" for number in range(3)])
    assert contents(case, tmp_path, "SELECT name, type FROM sqlite_schema") == [
        {"t0": "table", "t1": "table", "t2": "table"}
    ]
    with files.opened(case, path) as connection:
        assert connection.rows("PRAGMA page_size") == [(1024,)]
