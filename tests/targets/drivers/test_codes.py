"""Result codes: which are BUSY, and what they are called."""

from __future__ import annotations

import pytest

from sqlstress.targets.sqlite.drivers import codes

BUSY_RECOVERY, BUSY_TIMEOUT, IOERR_FSYNC, LOCKED, PROTOCOL = 261, 773, 1034, 6, 15


@pytest.mark.parametrize("code", [codes.BUSY, codes.BUSY_SNAPSHOT, BUSY_RECOVERY, BUSY_TIMEOUT])
def test_every_extended_busy_is_busy(code: int) -> None:
    assert codes.is_busy(code)


@pytest.mark.parametrize("code", [None, 0, LOCKED, PROTOCOL, IOERR_FSYNC, 5 << 8])
def test_nothing_else_is_busy(code: int | None) -> None:
    assert not codes.is_busy(code)


CORRUPT_INDEX, CANTOPEN = 779, 14


@pytest.mark.parametrize(
    ("code", "damage"),
    [(codes.CORRUPT, True), (codes.NOTADB, True), (CORRUPT_INDEX, True), (CANTOPEN, False), (None, False)],
)
def test_damage_is_told_from_what_has_to_do_with_the_surroundings(code: int | None, damage: bool) -> None:
    assert codes.is_damage(code) is damage


@pytest.mark.parametrize(
    ("code", "lack"),
    [
        (codes.FULL, True),
        (codes.NOMEM, True),
        (CANTOPEN, True),
        (IOERR_FSYNC, True),
        (codes.IOERR_SHORT_READ, False),
        (codes.CORRUPT, False),
        (codes.BUSY, False),
        (codes.ERROR, False),
        (None, False),
    ],
)
def test_what_sqlite_lacks_is_told_from_what_it_read(code: int | None, lack: bool) -> None:
    assert codes.is_lack(code) is lack
    assert code is None or (codes.advice(code) is not None) is lack


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (5, "SQLITE_BUSY"),
        (517, "SQLITE_BUSY (extended code 517)"),
        (IOERR_FSYNC, "SQLITE_IOERR (extended code 1034)"),
        (11, "SQLITE_CORRUPT"),
        (99, "SQLite result code 99"),
    ],
)
def test_a_code_is_told_by_its_name(code: int, name: str) -> None:
    assert codes.name(code) == name
