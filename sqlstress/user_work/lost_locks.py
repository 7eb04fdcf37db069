"""Lost locks: causes and signs that a process has lost SQLite's locks on a database that it has open.

On POSIX systems, a process loses all its locks on a file when it closes any descriptor of the file. The next
process that closes the database believes that it is the last user, and deletes -wal and -shm. Later commits
of the first process are invisible to all other processes. Two SQLite libraries in a process have the same
effect, because neither knows of the other's descriptors.

Source: https://www.sqlite.org/howtocorrupt.html, sections 2.2 and 2.3
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from sqlstress.user_work import CLOSED, DELETED, LIBRARIES, LOST_LOCKS
from sqlstress.user_work.failed_statements import FailedStatements
from sqlstress.user_work.source import PlainObservation

SUFFIXES = ("", "-wal", "-shm")
_REMOVALS = ("os.remove", "os.rename")
"""Audit events of Python's functions that delete or move a file."""


class LostLocks:
    """Observer of this process: does it open the files of its open database, other than through SQLite?"""

    def __init__(self, file: str, statements: FailedStatements) -> None:
        """`file` is the path of the database.

        `statements` has its connections, and finds the user's lines.
        """
        self._names = tuple(Path(file + suffix).name for suffix in SUFFIXES)
        self._file, self._statements = Path(file), statements
        self._opened = Counter[tuple[str, str]]()
        self._removed = Counter[tuple[str, str]]()
        """Calls of the user's code that deleted or moved -wal or -shm: file name and line."""

    def install(self) -> None:
        """Observe from now on; this cannot be undone. Do nothing on Windows, where closing drops no locks."""
        if sys.platform != "win32":
            sys.addaudithook(self._hook)
            self._statements.on_open = self._note_libraries

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        is_removal = event in _REMOVALS
        if not (is_removal or event == "open") or not isinstance(args[0], str | bytes | os.PathLike):
            return
        path = os.fsdecode(args[0])
        if not path.endswith(self._names[is_removal:]) or not self._is_ours(Path(path)):
            return
        if Path(path).exists() if is_removal else self._libraries():
            line = self._statements.lines.line(sys._getframe(1))
            counts = self._removed if is_removal else self._opened
            counts[Path(path).name, self._statements.lines.text(line) if line else ""] += 1

    def _is_ours(self, path: Path) -> bool:
        with suppress(OSError):
            return path.name in self._names and path.parent.resolve() == self._file.parent.resolve()
        return False

    def _libraries(self) -> set[str]:
        return self._statements.open_libraries(self._file.name)

    def _note_libraries(self) -> None:
        """Record if two SQLite libraries have the database open.

        An apsw without its own copy of SQLite ("amalgamation") may use the same library as sqlite3.
        """
        if len(self._libraries()) > 1 and import_module("apsw").using_amalgamation:
            self._opened[LIBRARIES, ""] += 1

    def records(self) -> list[PlainObservation]:
        """Return the causes and signs of lost locks so far. Call it while the connections are still open."""
        records: list[PlainObservation] = []
        for (name, at), count in self._opened.items():
            kind = LIBRARIES if name == LIBRARIES else CLOSED
            records.append((LOST_LOCKS, kind, count, "", {"file": name, "at": at}))
        for (name, at), count in self._removed.items():
            records.append((LOST_LOCKS, DELETED, count, "", {"file": name, "at": at or "the code"}))
        if names := " and ".join(self._deleted()):
            records.append((LOST_LOCKS, DELETED, 1, "", {"file": names, "at": ""}))
        return records

    def _deleted(self) -> Iterator[str]:
        """Yield the names of deleted files of the database that this process has open; none without /proc."""
        descriptors = Path("/proc/self/fd")
        if not descriptors.is_dir():
            return
        names = set()
        for descriptor in descriptors.iterdir():
            with suppress(OSError):
                target = str(descriptor.readlink())
                path = Path(target.removesuffix(" (deleted)"))
                if str(path) != target and self._is_ours(path):
                    names.add(path.name)
        yield from sorted(names, reverse=True)
