"""What a database file says of itself in its first bytes, read without SQLite."""

from __future__ import annotations

from pathlib import Path

from sqlstress.errors import UsageError

_HEADER = b"SQLite format 3\0"
_READ_VERSION = 19
"""Place in the file of what says that it has a WAL: 2. Source: https://www.sqlite.org/fileformat2.html"""


def journal_mode_apart(name: str) -> str:
    """Return the same, read by another process. Raises UsageError, or EnvironmentFailure where none starts.

    Who closes a file gives up all locks that his process has on it: those of a test, or of a program, that
    measures a copy of the database on which it works itself.
    """
    # Help loads this, and needs no processes.
    from sqlstress.system.processes import call_apart

    return call_apart(lambda: None, journal_mode, name)


def journal_mode(name: str) -> str:
    """Return the journal mode that a database has: wal, or delete for any other. Raises UsageError.

    To be called where nobody works on it: see `journal_mode_apart`.
    """
    path = Path(name)
    try:
        if not path.is_file():
            raise UsageError(f"--database {name!r:.200}: there is no such file.")
        with path.open("rb") as file:
            header = file.read(_READ_VERSION + 1)
    except OSError as error:
        raise UsageError(f"cannot read {name!r:.200}: {error.strerror or error}.") from error
    if not header:
        raise UsageError(f"{name!r:.200} is empty: there is nothing to copy. Leave out --database.")
    if not header.startswith(_HEADER):
        raise UsageError(f"{name!r:.200} is no SQLite database, or an encrypted one.")
    return "wal" if header[_READ_VERSION:] == b"\2" else "delete"
