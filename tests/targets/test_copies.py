"""Copies restore prepared databases for the next trial: the same bytes, without touching foreign files."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sqlstress.experiments.kv.spec import Load
from sqlstress.report.case import Case, Settings
from sqlstress.targets import open_place
from sqlstress.targets.sqlite import copies
from sqlstress.targets.sqlite.drivers import load_driver
from sqlstress.targets.sqlite.files import SqliteTable
from sqlstress.targets.sqlite.place import SqlitePlace
from tests.pulses import nothing

KEYS = 500
CASE = Case(buckets=2, spec=Load(key_space=KEYS), settings=Settings(synchronous="off", wal_autocheckpoint=50))


@contextmanager
def filled_place(
    case: Case, folder: Path, copies_by_layout: dict[Any, Any] | None
) -> Iterator[tuple[SqlitePlace, SqliteTable]]:
    """Yield a place as a trial's workers find it, and the table that holds its files; discard the place."""
    place = open_place(case, folder)
    assert isinstance(place, SqlitePlace)
    place.copies = copies_by_layout
    table = place.table("int", 8, 0)
    table.fill([[(key, key) for key in range(KEYS)]] * case.buckets, nothing)
    yield place, table
    table.release()
    place.discard()


def state_of(place: SqlitePlace) -> dict[str, Any]:
    """Return the bytes of the databases, the sizes of the WALs, and the numbers of their valid frames."""
    frames = []
    for path in place.paths:
        connection = load_driver("sqlite3").connect(path, 0)
        frames.append(connection.rows("PRAGMA wal_checkpoint(PASSIVE)")[0][1])
        connection.close()
    files = {path.name: path for path in place.where.iterdir() if not path.name.endswith("-shm")}
    state = {n: p.stat().st_size if n.endswith("-wal") else p.read_bytes() for n, p in files.items()}
    return {**state, "frames": frames}


def change_every_row(place: SqlitePlace) -> None:
    """Work like workers: connect, change every row in many commits, and close."""
    for path in place.paths:
        connection = load_driver("sqlite3").connect(path, 0)
        connection.rows("PRAGMA synchronous=off")
        for key in range(KEYS):
            connection.rows("UPDATE kv SET value = -1 WHERE key = ?", (key,))
        connection.close()


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_later_trials_find_the_same_state_as_the_first(journal: str, tmp_path: Path) -> None:
    case = Case(buckets=2, spec=CASE.spec, settings=Settings(journal_mode=journal, synchronous="off"))
    copies_by_layout: dict[Any, Any] = {}
    states, inodes = [], []
    for _ in range(3):
        with filled_place(case, tmp_path, copies_by_layout) as (place, _):
            states.append(state_of(place))
            files = [path for path in tmp_path.iterdir() if "-shm" not in path.name]
            inodes.append({path.name: path.stat().st_ino for path in files})
            change_every_row(place)
    assert states[0] == states[1] == states[2]
    assert any(name.endswith("-wal") for name in states[0]) == (journal == "wal")
    assert inodes[0] == inodes[1] == inodes[2]  # so the blocks on the disk are the same


def test_everything_is_removed_if_no_copies_are_kept(tmp_path: Path) -> None:
    with filled_place(CASE, tmp_path, None):
        pass
    assert list(tmp_path.iterdir()) == []


def test_copy_without_room_in_memory_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "MOST", 1)
    copies_by_layout: dict[Any, Any] = {}
    with filled_place(CASE, tmp_path, copies_by_layout):
        pass
    assert not copies_by_layout
    assert list(tmp_path.iterdir()) == []


def test_foreign_file_in_place_of_ours_is_not_overwritten(tmp_path: Path) -> None:
    copies_by_layout: dict[Any, Any] = {}
    with filled_place(CASE, tmp_path, copies_by_layout) as (place, _):
        pass
    theirs = tmp_path / "theirs"
    theirs.write_bytes(b"theirs")
    for path in (place.paths[0], place.paths[1].with_name("kv_1.db-spare")):
        path.unlink()
        path.symlink_to(theirs)
    with filled_place(CASE, tmp_path, copies_by_layout) as (place, _):
        assert state_of(place)["frames"] == [0, 0]
        assert theirs.read_bytes() == b"theirs"


def test_wal_open_in_another_connection_is_left_alone(tmp_path: Path) -> None:
    copies_by_layout: dict[Any, Any] = {}
    written = "SELECT value FROM kv WHERE key = 1"
    with filled_place(CASE, tmp_path, copies_by_layout) as (place, table):
        other = load_driver("sqlite3").connect(place.paths[0], 0)
        other.rows("UPDATE kv SET value = -1 WHERE key = 1")
        table.release()  # another connection is still open
        assert other.rows(written) == [(-1,)]
        other.close()
        with place.opened(0) as connection:
            assert connection.rows(written) == [(-1,)]
    with filled_place(CASE, tmp_path, copies_by_layout) as (place, _), place.opened(0) as connection:
        assert connection.rows(written) == [(1,)]


def test_oldest_copy_is_dropped_for_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copies_by_layout: dict[Any, Any] = {}
    for journal in ("wal", "delete"):
        case = Case(buckets=2, spec=CASE.spec, settings=Settings(journal_mode=journal, synchronous="off"))
        with filled_place(case, tmp_path, copies_by_layout) as (place, _):
            pass
        (copy,) = copies_by_layout.values()
        monkeypatch.setattr(copies, "MOST", copy.size + 1)
    assert [layout.settings.journal_mode for layout in copies_by_layout] == ["delete"]
    # Files of the earlier layout were overwritten.
    assert all(b"SQLite" in path.read_bytes()[:16] for path in place.paths)
