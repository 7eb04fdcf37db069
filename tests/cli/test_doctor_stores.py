"""The doctor reports other stores that can be measured here, and the installation command of the missing
ones.
"""

import re
import sys

import pytest

from tests.cli.conftest import Cli
from tests.servers import server

__all__ = ["server"]


def other_stores(out: str) -> str:
    """Return the paragraph on other stores, on one line."""
    return " ".join(out.partition("Other stores")[2].partition("\n\n")[0].split())


def test_doctor_reports_versions_and_the_server_to_start(cli: Cli) -> None:
    for name in ("apsw", "psycopg"):
        pytest.importorskip(name)
    text = other_stores(cli("doctor").out)
    assert re.search(r"apsw: SQLite 3\.\d+\.\d+ \(apsw ", text)
    assert re.search(r"psycopg: (PostgreSQL would be started, from |no PostgreSQL server to start)", text)
    assert "sqlite3:" not in text and "dry" not in text
    assert "sqlite3: SQLite " in other_stores(cli("doctor", "--driver", "apsw").out)


def test_missing_driver_is_reported_with_its_installation(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    said = cli("doctor")
    assert said.code == 0
    missing = other_stores(said.out).split("not installed: ")[1:]
    assert len(missing) == 1 and missing[0].startswith("psycopg (python -m pip install '.[postgres]')")


def test_server_that_cannot_run_does_not_fail_the_doctor(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setattr("sqlstress.targets.postgres.dialect.PACKAGE", "no_such_package")
    said = cli("doctor")
    assert said.code == 0 and "no PostgreSQL server to start" in other_stores(said.out)


@pytest.mark.thorough
def test_doctor_examines_the_server_of_the_dsn(cli: Cli, server: str) -> None:
    assert re.search(
        r"PostgreSQL \d+\.\d+, the server of --dsn", other_stores(cli("doctor", "--dsn", server).out)
    )


def test_unreachable_server_is_reported_without_its_password(cli: Cli) -> None:
    pytest.importorskip("psycopg")
    said = cli("doctor", "--dsn", "postgresql://me:secret@127.0.0.1:1/mine")
    assert said.code == 0 and "psycopg: cannot use the server" in other_stores(said.out)
    assert "secret" not in said.out + said.err
    wrong = cli("doctor", "--dsn", "nonsense://")
    assert (wrong.code, len(wrong.lines)) == (2, 1) and "--dsn: this is not a connection string" in wrong.err
