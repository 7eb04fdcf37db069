"""SQLite's result codes, with names and remedies, and the versions with the WAL-reset bug.

The low 8 bits of an extended result code are its primary code. Source: https://www.sqlite.org/rescode.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping

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
SCHEMA = 17
CONSTRAINT = 19
MISUSE = 21
NOTADB = 26
LOCKED_SHAREDCACHE = 262
IOERR_READ = 266
BUSY_SNAPSHOT = 517
IOERR_SHORT_READ = 522
IOERR_NOMEM = 3082
IOERR_SHMMAP = 5386
IOERR_DATA = 8202
IOERR_CORRUPTFS = 8458

NAMES: Mapping[int, str] = {
    ERROR: "SQLITE_ERROR",
    PERM: "SQLITE_PERM",
    BUSY: "SQLITE_BUSY",
    261: "SQLITE_BUSY_RECOVERY",
    BUSY_SNAPSHOT: "SQLITE_BUSY_SNAPSHOT",
    773: "SQLITE_BUSY_TIMEOUT",
    LOCKED: "SQLITE_LOCKED",
    LOCKED_SHAREDCACHE: "SQLITE_LOCKED_SHAREDCACHE",
    518: "SQLITE_LOCKED_VTAB",
    NOMEM: "SQLITE_NOMEM",
    READONLY: "SQLITE_READONLY",
    264: "SQLITE_READONLY_RECOVERY",
    520: "SQLITE_READONLY_CANTLOCK",
    776: "SQLITE_READONLY_ROLLBACK",
    1032: "SQLITE_READONLY_DBMOVED",
    1288: "SQLITE_READONLY_CANTINIT",
    1544: "SQLITE_READONLY_DIRECTORY",
    INTERRUPT: "SQLITE_INTERRUPT",
    IOERR: "SQLITE_IOERR",
    IOERR_READ: "SQLITE_IOERR_READ",
    IOERR_SHORT_READ: "SQLITE_IOERR_SHORT_READ",
    778: "SQLITE_IOERR_WRITE",
    1034: "SQLITE_IOERR_FSYNC",
    1290: "SQLITE_IOERR_DIR_FSYNC",
    1546: "SQLITE_IOERR_TRUNCATE",
    1802: "SQLITE_IOERR_FSTAT",
    2058: "SQLITE_IOERR_UNLOCK",
    2314: "SQLITE_IOERR_RDLOCK",
    2570: "SQLITE_IOERR_DELETE",
    IOERR_NOMEM: "SQLITE_IOERR_NOMEM",
    3338: "SQLITE_IOERR_ACCESS",
    3594: "SQLITE_IOERR_CHECKRESERVEDLOCK",
    3850: "SQLITE_IOERR_LOCK",
    4106: "SQLITE_IOERR_CLOSE",
    4618: "SQLITE_IOERR_SHMOPEN",
    4874: "SQLITE_IOERR_SHMSIZE",
    5130: "SQLITE_IOERR_SHMLOCK",
    IOERR_SHMMAP: "SQLITE_IOERR_SHMMAP",
    5642: "SQLITE_IOERR_SEEK",
    5898: "SQLITE_IOERR_DELETE_NOENT",
    6154: "SQLITE_IOERR_MMAP",
    6410: "SQLITE_IOERR_GETTEMPPATH",
    6922: "SQLITE_IOERR_VNODE",
    IOERR_DATA: "SQLITE_IOERR_DATA",
    IOERR_CORRUPTFS: "SQLITE_IOERR_CORRUPTFS",
    CORRUPT: "SQLITE_CORRUPT",
    267: "SQLITE_CORRUPT_VTAB",
    523: "SQLITE_CORRUPT_SEQUENCE",
    779: "SQLITE_CORRUPT_INDEX",
    FULL: "SQLITE_FULL",
    CANTOPEN: "SQLITE_CANTOPEN",
    270: "SQLITE_CANTOPEN_NOTEMPDIR",
    526: "SQLITE_CANTOPEN_ISDIR",
    782: "SQLITE_CANTOPEN_FULLPATH",
    1294: "SQLITE_CANTOPEN_DIRTYWAL",
    1550: "SQLITE_CANTOPEN_SYMLINK",
    PROTOCOL: "SQLITE_PROTOCOL",
    SCHEMA: "SQLITE_SCHEMA",
    CONSTRAINT: "SQLITE_CONSTRAINT",
    275: "SQLITE_CONSTRAINT_CHECK",
    787: "SQLITE_CONSTRAINT_FOREIGNKEY",
    1299: "SQLITE_CONSTRAINT_NOTNULL",
    1555: "SQLITE_CONSTRAINT_PRIMARYKEY",
    2067: "SQLITE_CONSTRAINT_UNIQUE",
    2579: "SQLITE_CONSTRAINT_ROWID",
    MISUSE: "SQLITE_MISUSE",
    NOTADB: "SQLITE_NOTADB",
}
"""Names of result codes, primary and extended."""
_ADVICE = {
    PERM: "choose a writable --dir",
    NOMEM: "close other programs, or lower --concurrency",
    READONLY: "choose a writable --dir",
    IOERR: "the disk failed or is full, or the file size limit was reached (ulimit -f): choose another --dir",
    FULL: "free some disk space, or choose another --dir",
    CANTOPEN: "check that the folder exists, its path is under 500 bytes, and ulimit -n is high enough",
}
"""Remedies, by primary result code."""
_MEMORY_CODES = (IOERR_NOMEM, IOERR_SHMMAP)
"""Extended codes of an I/O error caused by a lack of memory."""
_DATA_CODES = (IOERR_READ, IOERR_SHORT_READ, IOERR_DATA, IOERR_CORRUPTFS)
"""Extended codes of an I/O error that may mean wrong data."""


def is_busy(code: int | None) -> bool:
    """Return whether a result code means that a lock was not free; False for None."""
    return code is not None and code & 0xFF == BUSY


def is_damage(code: int | None) -> bool:
    """Return whether a result code means a damaged file; False for None."""
    return code is not None and code & 0xFF in (CORRUPT, NOTADB)


def is_lack(code: int | None) -> bool:
    """Return whether a result code means that a resource or permission is missing, not wrong data."""
    return code is not None and code & 0xFF in _ADVICE and code not in _DATA_CODES


def advice(code: int) -> str | None:
    """Return the remedy for a missing resource or permission; None for other result codes."""
    return _ADVICE[NOMEM if code in _MEMORY_CODES else code & 0xFF] if is_lack(code) else None


def explained(code: int, text: str) -> str:
    """Return a result code's name, SQLite's message, and the remedy if there is one."""
    remedy = f" ({advice(code)})" if is_lack(code) else ""
    return f"{name(code)}: {text}".removesuffix(": ") + remedy


SIGBUS, TRANSACTION_ERROR = -7, -8
"""Our own codes for causes without a result code, such as death by the signal SIGBUS.

TRANSACTION_ERROR is a BEGIN, COMMIT or ROLLBACK in the wrong place, for which SQLite returns SQLITE_ERROR.
"""
_SPECIAL_NAMES = {SIGBUS: "SIGBUS", TRANSACTION_ERROR: "SQLITE_ERROR"}


def name(code: int) -> str:
    """Return a result code's name; for an unlisted extended code, the primary code's name and the number."""
    if code in NAMES or code in _SPECIAL_NAMES:
        return NAMES.get(code) or _SPECIAL_NAMES[code]
    primary = NAMES.get(code & 0xFF, f"SQLite result code {code & 0xFF}")
    return primary if code == code & 0xFF else f"{primary} (extended code {code})"


def has_wal_reset_bug(version: str) -> bool:
    """Return whether a version of SQLite was released with the WAL-reset bug.

    Source: sqlite.org/wal.html, "The WAL-Reset Bug": 3.7.0 to 3.51.2, except for 3.44.6 and 3.50.7.
    """
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if not match:
        return False
    major, minor, patch = map(int, match.groups())
    patched_from = {(3, 44): 6, (3, 50): 7}.get((major, minor))
    if patched_from is not None and patch >= patched_from:
        return False
    return (3, 7, 0) <= (major, minor, patch) < (3, 51, 3)
