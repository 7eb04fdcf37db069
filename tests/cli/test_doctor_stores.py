"""The doctor says which other stores could be measured here, and of what is missing how to install it."""

from __future__ import annotations

import re
import sys

import pytest

from tests.cli.conftest import Cli
from tests.servers import server

__all__ = ["server"]


def told(out: str) -> str:
    """Return what it says of other stores, on one line."""
    return " ".join(out.partition("Other stores")[2].partition("\n\n")[0].split())


def test_versions_stand_there_and_which_server_would_be_started(cli: Cli) -> None:
    for name in ("apsw", "psycopg"):
        pytest.importorskip(name)
    text = told(cli("doctor").out)
    assert re.search(r"apsw: SQLite 3\.\d+\.\d+ \(apsw ", text)
    assert re.search(r"psycopg: (PostgreSQL would be started, from |no PostgreSQL server to start)", text)
    assert "sqlite3:" not in text and "dry" not in text
    assert "sqlite3: SQLite " in told(cli("doctor", "--driver", "apsw").out)


def test_what_is_missing_is_told_with_what_to_install(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    said = cli("doctor")
    assert said.code == 0
    missing = told(said.out).split("not installed: ")[1:]
    assert len(missing) == 1 and missing[0].startswith("psycopg (python -m pip install '.[postgres]')")


def test_a_server_that_can_not_run_is_no_fault_of_the_rest(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setattr("sqlstress.targets.postgres.dialect.PACKAGE", "no_such_package")
    said = cli("doctor")
    assert said.code == 0 and "no PostgreSQL server to start" in told(said.out)


@pytest.mark.thorough
def test_a_server_of_yours_is_looked_at(cli: Cli, server: str) -> None:
    assert re.search(r"PostgreSQL \d+\.\d+, the server of --dsn", told(cli("doctor", "--dsn", server).out))


def test_one_that_does_not_answer_is_told_without_its_password(cli: Cli) -> None:
    pytest.importorskip("psycopg")
    said = cli("doctor", "--dsn", "postgresql://me:secret@127.0.0.1:1/mine")
    assert said.code == 0 and "psycopg: cannot use the server" in told(said.out)
    assert "secret" not in said.out + said.err
    wrong = cli("doctor", "--dsn", "nonsense://")
    assert (wrong.code, len(wrong.lines)) == (2, 1) and "--dsn: this is not a connection string" in wrong.err
