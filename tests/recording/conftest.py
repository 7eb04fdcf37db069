"""Tests of user programs are measured as briefly as commands are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from sqlstress.recording.call_costs import CallCosts
from sqlstress.recording.callers import UserFrames
from sqlstress.recording.failed_statements import FailedStatements


@pytest.fixture(autouse=True)
def all_are_brief(brief_runs: None) -> None:
    """Keep all runs brief, and run no trial again because of the load of parallel tests."""


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[FailedStatements]:
    """Watch the connections that a test opens."""
    monkeypatch.setattr(sqlite3, "connect", sqlite3.connect)
    monkeypatch.setattr(sqlite3.dbapi2, "connect", sqlite3.dbapi2.connect)
    monkeypatch.setattr(apsw, "Connection", apsw.Connection)
    hooks = [*apsw.connection_hooks]
    recorder = FailedStatements(UserFrames(Path(__file__).parent), CallCosts())
    recorder.install()
    yield recorder
    apsw.connection_hooks[:] = hooks


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a WAL database with a table."""
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (x)")
        connection.executemany("INSERT INTO t VALUES (?)", [(number,) for number in range(9)])
    return path
