"""Exceptions of every kind, told as ours."""

from __future__ import annotations

import sqlite3

import pytest

from sqlstress.engine.failure import as_failure
from sqlstress.errors import UsageError


def refused() -> Exception:
    with pytest.raises(sqlite3.OperationalError) as caught:
        sqlite3.connect("file:nowhere?mode=rw", uri=True)
    return caught.value


def test_what_sqlite_refused_is_told_with_its_code_and_what_to_do() -> None:
    failure = as_failure(refused(), "sqlite3")
    assert str(failure).startswith("SQLITE_CANTOPEN: unable to open database file (is the folder still there")


def test_what_the_system_refused_is_told_as_it_is() -> None:
    assert (
        str(as_failure(OSError(24, "Too many open files"), "dry"))
        == "OSError: [Errno 24] Too many open files"
    )


def test_what_nobody_expected_is_to_be_reported() -> None:
    failure = as_failure(KeyError("x"), "sqlite3")
    assert (failure.exit_code, "unexpected: please report it" in str(failure)) == (4, True)


def test_what_is_ours_stays_what_it_is() -> None:
    error = UsageError("no")
    assert as_failure(error, "sqlite3") is error
