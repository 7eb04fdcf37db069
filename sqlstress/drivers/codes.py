"""SQLite's numbers: its result codes, as far as a stress test has to tell them apart, and a limit.

Source: https://www.sqlite.org/rescode.html
"""

from __future__ import annotations

ERROR = 1
BUSY = 5
NOMEM = 7
INTERRUPT = 9
BUSY_SNAPSHOT = 517
CORRUPT = 11
FULL = 13
CANTOPEN = 14
NOTADB = 26

LIMIT_VARIABLE_NUMBER = 9
"""Category of the limit on a statement's parameters. Source: https://www.sqlite.org/c3ref/c_limit_attached.html"""

_NAMES = {
    1: "SQLITE_ERROR",
    3: "SQLITE_PERM",
    5: "SQLITE_BUSY",
    6: "SQLITE_LOCKED",
    7: "SQLITE_NOMEM",
    8: "SQLITE_READONLY",
    9: "SQLITE_INTERRUPT",
    10: "SQLITE_IOERR",
    11: "SQLITE_CORRUPT",
    13: "SQLITE_FULL",
    14: "SQLITE_CANTOPEN",
    15: "SQLITE_PROTOCOL",
    26: "SQLITE_NOTADB",
}


def is_busy(code: int | None) -> bool:
    """Return whether a result code, extended or not, says that a lock was not free."""
    return code is not None and code & 0xFF == BUSY


def is_damage(code: int | None) -> bool:
    """Return whether a result code, extended or not, says that a file is not a sound database."""
    return code is not None and code & 0xFF in (CORRUPT, NOTADB)


def name(code: int) -> str:
    """Return the name of a result code: its primary name, and the extended number if it has one."""
    primary = _NAMES.get(code & 0xFF, f"SQLite result code {code & 0xFF}")
    return primary if code == code & 0xFF else f"{primary} (extended code {code})"
