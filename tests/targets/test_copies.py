"""What was prepared once is there again for the next trial: the same bytes, and nobody else's files."""

from __future__ import annotations

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


def begun(case: Case, folder: Path, kept: dict[Any, Any] | None) -> tuple[SqlitePlace, SqliteTable]:
    """Return a place as the workers of a trial find it, and what keeps it so."""
    place = open_place(case, folder)
    assert isinstance(place, SqlitePlace)
    place.copies = kept
    table = place.table("int", 8, 0)
    table.fill([[(key, key) for key in range(KEYS)]] * case.buckets, nothing)
    return place, table


def found(place: SqlitePlace) -> dict[str, Any]:
    """Return the bytes of the databases, the size of the WALs, and how many frames are valid in them."""
    frames = []
    for path in place.paths:
        connection = load_driver("sqlite3").connect(path, 0)
        frames.append(connection.rows("PRAGMA wal_checkpoint(PASSIVE)")[0][1])
        connection.close()
    files = {path.name: path for path in place.where.iterdir() if not path.name.endswith("-shm")}
    state = {n: p.stat().st_size if n.endswith("-wal") else p.read_bytes() for n, p in files.items()}
    return {**state, "frames": frames}


def written(place: SqlitePlace) -> None:
    """Do what workers do: change every row, in many commits, and connect and close."""
    for path in place.paths:
        connection = load_driver("sqlite3").connect(path, 0)
        connection.rows("PRAGMA synchronous=off")
        for key in range(KEYS):
            connection.rows("UPDATE kv SET value = -1 WHERE key = ?", (key,))
        connection.close()


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_later_trial_finds_what_the_first_one_found(journal: str, tmp_path: Path) -> None:
    case = Case(buckets=2, spec=CASE.spec, settings=Settings(journal_mode=journal, synchronous="off"))
    kept: dict[Any, Any] = {}
    states, inodes = [], []
    for _ in range(3):
        place, table = begun(case, tmp_path, kept)
        states.append(found(place))
        inodes.append(
            {path.name: path.stat().st_ino for path in tmp_path.iterdir() if "-shm" not in path.name}
        )
        written(place)
        table.release()
        place.discard()
    assert states[0] == states[1] == states[2]
    assert any(name.endswith("-wal") for name in states[0]) == (journal == "wal")
    assert inodes[0] == inodes[1] == inodes[2]  # the blocks on the disk are the same, too


def test_without_a_memory_for_copies_everything_is_removed(tmp_path: Path) -> None:
    place, table = begun(CASE, tmp_path, None)
    table.release()
    place.discard()
    assert list(tmp_path.iterdir()) == []


def test_what_has_no_room_in_memory_is_filled_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "MOST", 1)
    kept: dict[Any, Any] = {}
    place, table = begun(CASE, tmp_path, kept)
    table.release()
    place.discard()
    assert not kept
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_somebody_put_in_the_place_of_ours_is_not_written_to(tmp_path: Path) -> None:
    kept: dict[Any, Any] = {}
    place, table = begun(CASE, tmp_path, kept)
    table.release()
    place.discard()
    theirs = tmp_path / "theirs"
    theirs.write_bytes(b"theirs")
    for path in (place.paths[0], place.paths[1].with_name("kv_1.db-spare")):
        path.unlink()
        path.symlink_to(theirs)
    place, table = begun(CASE, tmp_path, kept)
    assert found(place)["frames"] == [0, 0]
    assert theirs.read_bytes() == b"theirs"
    table.release()


def test_a_wal_that_others_have_open_is_left_to_them(tmp_path: Path) -> None:
    kept: dict[Any, Any] = {}
    place, table = begun(CASE, tmp_path, kept)
    other = load_driver("sqlite3").connect(place.paths[0], 0)
    other.rows("UPDATE kv SET value = -1 WHERE key = 1")
    table.release()  # is not the last one to close
    assert other.rows("SELECT value FROM kv WHERE key = 1") == [(-1,)]
    other.close()
    with place.opened(0) as connection:
        assert connection.rows("SELECT value FROM kv WHERE key = 1") == [(-1,)]
    place, table = begun(CASE, tmp_path, kept)
    with place.opened(0) as connection:
        assert connection.rows("SELECT value FROM kv WHERE key = 1") == [(1,)]
    table.release()


def test_the_oldest_copy_makes_room_for_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[Any, Any] = {}
    for journal in ("wal", "delete"):
        case = Case(buckets=2, spec=CASE.spec, settings=Settings(journal_mode=journal, synchronous="off"))
        place, table = begun(case, tmp_path, kept)
        table.release()
        place.discard()
        (copy,) = kept.values()
        monkeypatch.setattr(copies, "MOST", copy.size + 1)
    assert [layout.settings.journal_mode for layout in kept] == ["delete"]
    # Files of the earlier layout were written over.
    assert all(b"SQLite" in path.read_bytes()[:16] for path in place.paths)
