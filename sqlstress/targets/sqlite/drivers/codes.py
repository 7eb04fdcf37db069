"""SQLite's numbers: its result codes, as far as a stress test has to tell them apart, and a limit.

Source: https://www.sqlite.org/rescode.html
"""

from __future__ import annotations

ERROR = 1
PERM = 3
BUSY = 5
LOCKED = 6
NOMEM = 7
READONLY = 8
INTERRUPT = 9
IOERR = 10
CORRUPT = 11
FULL = 13
CANTOPEN = 14
PROTOCOL = 15
NOTADB = 26
IOERR_READ = 266
BUSY_SNAPSHOT = 517
IOERR_SHORT_READ = 522
IOERR_NOMEM = 3082
IOERR_SHMMAP = 5386
IOERR_DATA = 8202
IOERR_CORRUPTFS = 8458

LIMIT_VARIABLE_NUMBER = 9
"""Category of the limit on a statement's parameters. Source: https://www.sqlite.org/c3ref/c_limit_attached.html"""

_NAMES = {
    ERROR: "SQLITE_ERROR",
    PERM: "SQLITE_PERM",
    BUSY: "SQLITE_BUSY",
    LOCKED: "SQLITE_LOCKED",
    NOMEM: "SQLITE_NOMEM",
    READONLY: "SQLITE_READONLY",
    INTERRUPT: "SQLITE_INTERRUPT",
    IOERR: "SQLITE_IOERR",
    CORRUPT: "SQLITE_CORRUPT",
    FULL: "SQLITE_FULL",
    CANTOPEN: "SQLITE_CANTOPEN",
    PROTOCOL: "SQLITE_PROTOCOL",
    NOTADB: "SQLITE_NOTADB",
}
_ADVICE = {
    PERM: "choose a writable --dir",
    NOMEM: "close other programs, or lower --concurrency",
    READONLY: "choose a writable --dir",
    IOERR: "the disk failed or is full, or the file size limit was reached (ulimit -f): choose another --dir",
    FULL: "free some disk space, or choose another --dir",
    CANTOPEN: "check that the folder exists, its path is under 500 bytes, and ulimit -n is high enough",
}
_OF_MEMORY = (IOERR_NOMEM, IOERR_SHMMAP)
_OF_DATA = (IOERR_READ, IOERR_SHORT_READ, IOERR_DATA, IOERR_CORRUPTFS)


def is_busy(code: int | None) -> bool:
    """Return whether a result code, extended or not, says that a lock was not free."""
    return code is not None and code & 0xFF == BUSY


def is_damage(code: int | None) -> bool:
    """Return whether a result code, extended or not, says that a file is not a sound database."""
    return code is not None and code & 0xFF in (CORRUPT, NOTADB)


def is_lack(code: int | None) -> bool:
    """Return whether a result code says what SQLite lacked, such as space, and nothing of the data."""
    return code is not None and code & 0xFF in _ADVICE and code not in _OF_DATA


def advice(code: int) -> str | None:
    """Return what can be done about a result code; None where that depends."""
    return _ADVICE[NOMEM if code in _OF_MEMORY else code & 0xFF] if is_lack(code) else None


def explained(code: int, text: str) -> str:
    """Return what went wrong, and what to do about it, with SQLite's name for it and SQLite's words."""
    remedy = f" ({advice(code)})" if is_lack(code) else ""
    return f"{name(code)}: {text}".removesuffix(": ") + remedy


def name(code: int) -> str:
    """Return the name of a result code: its primary name, and the extended number if it has one."""
    primary = _NAMES.get(code & 0xFF, f"SQLite result code {code & 0xFF}")
    return primary if code == code & 0xFF else f"{primary} (extended code {code})"
