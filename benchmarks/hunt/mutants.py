"""Faults for SQLite's own code: in each one lock, barrier or re-check is left out of an amalgamation.

A mutant names the function and replaces one expression in it; what is replaced is found by the words of the
call, so that it holds over versions. No source of SQLite is kept here: the file is the caller's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault."""

    name: str
    function: str
    """The function in whose body the fault is made."""
    pattern: str
    """Regular expression of the replaced text; its match number `place` is replaced."""
    replacement: str
    place: int = 0
    why: str = ""
    """Reason why it need not be found; empty if it must be found."""


_HEADER = r"memcmp\(\s*(?:\(void \*\))?&?[^;{]*?sizeof\(WalIndexHdr\)\s*\)"

MUTANTS = (
    Mutant(
        "a writer on an old snapshot goes on", "sqlite3WalBeginWriteTransaction", _HEADER + r"\s*!=\s*0", "0"
    ),
    Mutant(
        "no lock to write",
        "sqlite3WalBeginWriteTransaction",
        r"walLockExclusive\(pWal, WAL_WRITE_LOCK, 1\)",
        "0",
    ),
    Mutant(
        "no lock to run a checkpoint",
        "sqlite3WalCheckpoint",
        r"walLockExclusive\(pWal, WAL_CKPT_LOCK, 1\)",
        "0",
    ),
    Mutant(
        "a checkpoint does not see that the WAL was begun anew (the WAL-reset bug)",
        "walCheckpoint",
        r"memcmp\(pLive->aSalt[^;]*?\)\s*;",
        "0;",
    ),
    Mutant("a checkpoint does not heed readers", "walCheckpoint", r"mxSafeFrame>y", "0"),
    Mutant(
        "a checkpoint writes without the lock of those who read the database only",
        "walCheckpoint",
        r"walBusyLock\(pWal,\s*xBusy,\s*pBusyArg,\s*WAL_READ_LOCK\(0\),\s*1\)",
        "SQLITE_OK",
    ),
    Mutant(
        "RESTART and TRUNCATE do not wait for readers",
        "walCheckpoint",
        r"walBusyLock\(pWal,\s*xBusy,\s*pBusyArg,\s*WAL_READ_LOCK\(1\),\s*WAL_NREADER-1\)",
        "SQLITE_OK",
    ),
    Mutant(
        "a reader of an empty WAL does not look again",
        "walTryBeginRead",
        _HEADER,
        "0",
    ),
    Mutant(
        "a reader does not look again whether its mark still holds",
        "walTryBeginRead",
        r"AtomicLoad\(pInfo->aReadMark\+mxI\)!=mxReadMark\s*\|\|\s*" + _HEADER,
        "0",
    ),
    Mutant(
        "a read mark is moved without its lock",
        "walTryBeginRead",
        r"walLockExclusive\(pWal, WAL_READ_LOCK\(i\), 1\)",
        "SQLITE_OK",
    ),
    Mutant(
        "a reader takes no lock on its mark",
        "walTryBeginRead",
        r"walLockShared\(pWal, WAL_READ_LOCK\(mxI\)\)",
        "0",
    ),
    Mutant(
        "the WAL is begun anew while others read it",
        "walRestartLog",
        r"walLockExclusive\(pWal, WAL_READ_LOCK\(1\), WAL_NREADER-1\)",
        "SQLITE_OK",
    ),
    Mutant(
        "a header that is being written is taken, unless its checksum is wrong",
        "walIndexTryHdr",
        r"memcmp\(&h1, &h2, sizeof\(h1\)\)!=0",
        "0",
        why="equivalent: the checksum tells the same",
    ),
    Mutant(
        "a header that is being written is taken",
        "walIndexTryHdr",
        r"memcmp\(&h1, &h2, sizeof\(h1\)\)!=0|aCksum\[0\]!=h1\.aCksum\[0\] \|\| aCksum\[1\]!=h1\.aCksum\[1\]",
        "0",
        place=-1,
        why="a header is written in some 20 ns, in which a writer does not pause",
    ),
    Mutant(
        "pages of an older snapshot stay in the cache",
        "pagerBeginReadTransaction",
        r"rc!=SQLITE_OK \|\| changed",
        "rc",
    ),
    Mutant(
        "pages of an older state stay in the cache (rollback journal)",
        "sqlite3PagerSharedLock",
        r"memcmp\(pPager->dbFileVers, dbFileVers, sizeof\(dbFileVers\)\)!=0",
        "0",
    ),
    Mutant(
        "a writer does not wait for readers (rollback journal)",
        "sqlite3PagerExclusiveLock",
        r"pager_wait_on_lock\(pPager, EXCLUSIVE_LOCK\)",
        "SQLITE_OK",
    ),
)


class NotFound(Exception):
    """An expression is not in the source: it is of a version that the mutants are not for."""


def mutated(source: str, mutant: Mutant) -> str:
    """Return an amalgamation with a fault. Raises NotFound."""
    begin, end = _body(source, mutant.function)
    found = list(re.finditer(mutant.pattern, source[begin:end], re.DOTALL))
    if not found:
        raise NotFound(f"{mutant.function} has no {mutant.pattern!r}")
    chosen = found if mutant.place < 0 else [found[mutant.place]]
    for match in reversed(chosen):
        at = begin + match.start()
        source = source[:at] + mutant.replacement + source[begin + match.end() :]
    return source


def _body(source: str, function: str) -> tuple[int, int]:
    """Return the span of a function's body: up to the next brace at the beginning of a line."""
    for match in re.finditer(rf"^(?:static|SQLITE_PRIVATE)[^;{{}}]*?\b{function}\(", source, re.MULTILINE):
        opening = re.compile(r"\{|;").search(source, match.end())
        if opening and opening.group() == "{":
            return opening.start(), source.index("\n}", opening.start())
    raise NotFound(f"there is no function {function}")
