"""Blob handles that stay open: they keep a snapshot or the write lock, although no transaction seems open."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from sqlstress.recording import FAILED_STATEMENT, OPEN_STATEMENT
from sqlstress.recording.after_calls import LONG_OPEN_S
from sqlstress.recording.failed_statements import FailedStatements
from tests.own_app import HEAD, findings_of, line_of, measured
from tests.recording.failing_programs import INSERT

LIBRARIES = ("sqlite3", "apsw")


@pytest.fixture
def pictures(file: Path) -> Path:
    """Return a database with a table of blobs."""
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript("CREATE TABLE pic (data BLOB); INSERT INTO pic VALUES (zeroblob(9))")
    return file


def opened(library: str, file: Path) -> Any:
    if library == "apsw":
        return apsw.Connection(str(file))
    return sqlite3.connect(file, timeout=0.1, isolation_level=None)


def blob_of(connection: Any, *, writable: bool) -> Any:
    """Open a blob handle. All tests open blob handles on two lines of this function."""
    if isinstance(connection, sqlite3.Connection):
        return connection.blobopen("pic", "data", 1, readonly=not writable)
    return connection.blob_open("main", "pic", "data", 1, writable)


def end_calls(recorder: FailedStatements) -> None:
    """End two calls of the user's functions, so late that a query in between counts as left open."""
    for _ in range(2):
        recorder.check_left_open("store")
        time.sleep(LONG_OPEN_S)
    recorder.check_left_open("store")


def still_open(recorder: FailedStatements) -> list[tuple[str, str, str]]:
    return [
        (what, traits["at"], traits["blob"])
        for topic, what, *_, traits in recorder.records()
        if topic == OPEN_STATEMENT
    ]


@pytest.mark.parametrize("writable", [True, False], ids=["writable", "read_only"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_blob_that_stays_open_is_recorded_with_its_line(
    library: str, pictures: Path, recorder: FailedStatements, *, writable: bool
) -> None:
    with closing(opened(library, pictures)) as connection:
        recorder.costs.begin()
        blob = blob_of(connection, writable=writable)
        end_calls(recorder)
        blob.close()
    ((what, at, kind),) = still_open(recorder)
    assert kind == ("write" if writable else "read")
    method = "blobopen" if library == "sqlite3" else "blob_open"
    assert what == f"{method} pic.data{'' if writable else ' (read-only)'}"
    assert at.startswith(f"{Path(__file__).name}:")


@pytest.mark.parametrize("library", LIBRARIES)
def test_closed_blob_is_not_recorded(library: str, pictures: Path, recorder: FailedStatements) -> None:
    with closing(opened(library, pictures)) as connection:
        recorder.costs.begin()
        with blob_of(connection, writable=True) as blob:
            blob.write(b"x")
        end_calls(recorder)
    assert still_open(recorder) == []


@pytest.mark.parametrize("library", LIBRARIES)
def test_blob_that_holds_the_write_lock_is_named(
    library: str, pictures: Path, recorder: FailedStatements
) -> None:
    # Locks of one library do not stop another library in the same process.
    with closing(opened(library, pictures)) as holder, closing(opened(library, pictures)) as other:
        blob = blob_of(holder, writable=True)
        assert not holder.in_transaction
        with suppress(sqlite3.OperationalError, apsw.BusyError):
            other.execute(INSERT)
        blob.close()
    ((*_, traits),) = [record for record in recorder.records() if record[0] == FAILED_STATEMENT]
    assert traits["holder"] == "this thread"
    assert f"pic.data ({Path(__file__).name}:" in traits["held_since"]


@pytest.mark.parametrize("closes", [True, False], ids=["closed", "read_only"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_closed_or_read_only_blob_holds_no_lock(
    library: str, pictures: Path, recorder: FailedStatements, *, closes: bool
) -> None:
    with closing(opened(library, pictures)) as this, closing(opened(library, pictures)) as other:
        other.execute("CREATE UNIQUE INDEX u ON t (x)")
        kept = [blob_of(connection, writable=closes and connection is this) for connection in (this, other)]
        if closes:
            kept[0].close()
            kept[1].close()
        with suppress(sqlite3.IntegrityError, apsw.ConstraintError):
            other.execute(INSERT)
        kept.clear()
    ((*_, traits),) = [record for record in recorder.records() if record[0] == FAILED_STATEMENT]
    assert traits["holder"] == ""
    assert bool(traits["open_blob"]) == (not closes)


def test_blob_that_cannot_be_opened_is_a_failed_statement(pictures: Path, recorder: FailedStatements) -> None:
    with closing(opened("apsw", pictures)) as holder, closing(opened("apsw", pictures)) as other:
        holder.execute("BEGIN IMMEDIATE")
        with suppress(apsw.BusyError):
            blob_of(other, writable=True)
    ((_, what, *_, traits),) = [record for record in recorder.records() if record[0] == FAILED_STATEMENT]
    assert (what, traits["statement"], traits["code"]) == ("blob_open pic.data", "write", "5")


def test_class_of_apsw_keeps_its_name_and_instances(file: Path, recorder: FailedStatements) -> None:
    with closing(opened("apsw", file)) as connection:
        assert isinstance(connection, apsw.Connection)
        assert type(connection).__name__ == "Connection"


STORES = HEAD.replace("(x); INSERT INTO t VALUES (0)", "(x); INSERT INTO t VALUES (zeroblob(9))").replace(
    "timeout=30", "timeout=0.1"
)
KEEPS = """
kept = []
@transaction
def store(c):
    blob = c.blobopen("t", "x", 1)
    kept[:] = [blob]
"""


@pytest.mark.thorough
def test_report_names_the_line_of_a_blob_and_the_cure(tmp_path: Path) -> None:
    report = measured(tmp_path, STORES + KEEPS, duration=1.0, concurrency=3)
    at = f"own.py:{line_of(STORES + KEEPS, 'blob = c.')}"
    (still,) = findings_of(report, "open-statement")
    assert (still.facts["at"], still.facts["blob"]) == (at, "write")
    assert any(at in finding.text for finding in findings_of(report, "failed-statement"))


@pytest.mark.thorough
def test_program_that_closes_its_blobs_gets_no_finding(tmp_path: Path) -> None:
    closes = KEEPS.replace("kept[:] = [blob]", "blob.close()")
    report = measured(tmp_path, STORES.replace("0.1", "30") + closes, duration=1.0)
    assert not findings_of(report, "open-statement") + findings_of(report, "failed-statement")
