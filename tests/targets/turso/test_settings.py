"""What Turso is told and tells, and whom its lock keeps out."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.report.server import Server
from sqlstress.target import LAST_LOST, SYNCED, UNSAFE, worth
from sqlstress.targets import turso
from sqlstress.targets.place import Place
from sqlstress.targets.turso.connections import TursoConnection, opened
from sqlstress.targets.turso.place import TursoPlace
from tests.pulses import nothing


def at(place: TursoPlace, **settings: object) -> TursoPlace:
    """Return the place of a case with other settings, filled."""
    case = replace(place.case, settings=replace(place.case.settings, **settings))  # type: ignore[arg-type]
    other = TursoPlace(case, place.where)
    other.table("int", 8, 0).fill([[(1, 10)], [(2, 20)]], nothing)
    return other


def elsewhere(code: str, path: Path) -> str:
    """Return what another process has to say when it does something with a file."""
    said = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    return said.stdout + said.stderr


BY_SQLITE = """
import sqlite3, sys
print(sqlite3.connect(sys.argv[1], timeout=0).execute("SELECT count(*) FROM kv").fetchall())
"""
BY_TURSO = """
import turso, sys
print(turso.connect(sys.argv[1], isolation_level=None).execute("SELECT count(*) FROM kv").fetchall())
"""
HELD_BY_TURSO = """
import turso, sys
held = turso.connect(sys.argv[1], isolation_level=None)
print(flush=True)
input()
"""


@pytest.mark.parametrize(
    ("level", "told"), [("full", SYNCED), (None, SYNCED), ("normal", LAST_LOST), ("off", UNSAFE)]
)
def test_a_level_is_read_back_and_is_worth_what_it_is_with_sqlite(
    place: TursoPlace, level: str | None, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    other = at(place, synchronous=level)
    with closing(other.keyvalue(1, "immediate", None)) as store:
        effective = store.effective()
    assert (effective["journal_mode"], effective["synchronous"]) == ("wal", level or "full")
    assert list(other.differences(effective)) == []
    assert worth(turso.durability(other.case, effective)) == told
    assert turso.durability(other.case, {}) == ""


def test_what_it_does_not_answer_is_not_vouched_for(place: TursoPlace) -> None:
    with closing(at(place, page_size=8192, cache_size=-4000).keyvalue(1, "immediate", None)) as store:
        effective = store.effective()
    assert (effective["page_size"], effective["cache_size"]) == ("8192", "-4000")
    assert not {"wal_autocheckpoint", "fullfsync", "mmap_size"} & set(effective)


def test_more_than_one_process_and_what_it_does_not_take_are_refused(place: TursoPlace) -> None:
    refused = {
        "use --concurrency 1": replace(place.case, concurrency=2),
        "extra is not to be had": replace(
            place.case, settings=replace(place.case.settings, synchronous="extra")
        ),
        "PRAGMA foreign_keys is SQLite's": replace(
            place.case, settings=replace(place.case.settings, pragmas=(("foreign_keys", "on"),))
        ),
    }
    for told, case in refused.items():
        with pytest.raises(UsageError, match=told):
            turso.checked(case, Server(), anyway=False)
    assert turso.checked(place.case, Server(), anyway=False).settings.journal_mode == "kept"


def test_a_prepared_file_is_open_to_the_worker_and_then_to_nobody_else(place: TursoPlace) -> None:
    filled = at(place)
    assert "[(1,)]" in elsewhere(BY_TURSO, filled.paths[0])
    with closing(filled.keyvalue(1, "immediate", None)):
        assert "locked by another process" in elsewhere(BY_TURSO, filled.paths[0])
        assert "database is locked" in elsewhere(BY_SQLITE, filled.paths[0])
    assert "[(1,)]" in elsewhere(BY_SQLITE, filled.paths[0])


def test_who_holds_the_file_is_told_of(place: TursoPlace) -> None:
    filled = at(place)
    holder = subprocess.Popen(
        [sys.executable, "-c", HELD_BY_TURSO, str(filled.paths[0])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout and holder.stdout.readline()
        with pytest.raises(EnvironmentFailure, match=r"cannot open kv_0\.db: .*end the other program"):
            filled.keyvalue(1, "immediate", None)
    finally:
        holder.communicate(b"\n")


def test_a_statement_alone_is_a_transaction_of_its_own(place: TursoPlace) -> None:
    filled = at(place)
    with closing(opened(filled.paths[0])) as connection:
        connection.rows("REPLACE INTO kv (key, value) VALUES (3, 30)")
        assert not connection._connection.in_transaction
    assert dict(filled.table("int", 8, 0).rows(0)) == {1: 10, 3: 30}


def test_what_is_not_there_is_not_made_anew(place: TursoPlace) -> None:
    with pytest.raises(EnvironmentFailure, match=r"cannot open kv_0\.db: the file is not there"):
        place.keyvalue(1, "immediate", None)
    assert list(place.where.iterdir()) == []


def test_an_error_of_its_own_is_told_as_such(place: TursoPlace) -> None:
    with closing(TursoConnection(":memory:")) as connection, pytest.raises(Exception, match="kv") as found:
        connection.rows("SELECT 1 FROM kv")
    error: BaseException = found.value
    assert isinstance(error, Exception)
    assert turso.foresees(error)
    assert turso.explain("turso", error).startswith("Turso: ")


def test_an_error_of_sqlites_in_what_the_parent_does_is_told_as_sqlites(place: TursoPlace) -> None:
    filled = at(place)
    for path in filled.paths:
        path.write_bytes(b"not what it was" * 1000)
    with pytest.raises(sqlite3.DatabaseError) as found:
        filled.schema()
    assert turso.foresees(found.value)
    assert turso.explain("turso", found.value).startswith("SQLITE_NOTADB: ")


def test_a_prepared_file_stands_alone(place: TursoPlace) -> None:
    filled = at(place)
    assert sorted(path.name for path in filled.where.iterdir()) == [path.name for path in filled.paths]


def test_without_the_binding_it_says_which_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "turso", None)
    with pytest.raises(UsageError, match=r"pip install '\.\[turso\]', or choose another --driver"):
        turso.describe("turso")


def test_there_is_no_loop_in_c(place: TursoPlace) -> None:
    filled: Place = place
    with pytest.raises(EnvironmentFailure, match="--loop python"):
        filled.native(1, "immediate")
