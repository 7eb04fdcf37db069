"""Causes and signs that a process has lost SQLite's locks on an open database.

On POSIX, a process loses all its locks on a file when it closes any descriptor of the file. The next process
that closes the database believes that it is the last user, and deletes -wal and -shm. Later commits of the
first process are invisible to all others. Two SQLite libraries in a process have the same effect, because
neither knows the other's descriptors.

Source: https://www.sqlite.org/howtocorrupt.html, sections 2.2 and 2.3
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from sqlstress.recording import CLOSED, COPIED, DELETED, LIBRARIES, LOST_LOCKS, MOVED, PlainObservation
from sqlstress.recording.failed_statements import FailedStatements

SUFFIXES = ("", "-wal", "-shm")
_REMOVALS = ("os.remove", "os.rename")
"""Audit events of Python before it deletes or moves a file."""
_STARTS = ("subprocess.Popen", "os.system")
"""Audit events of Python before it starts a program."""
COPIERS = {
    *("cat", "copy", "cp", "dd", "install", "rclone", "rsync", "scp", "xcopy"),
    *("7z", "bzip2", "gzip", "pigz", "tar", "xz", "zip", "zstd"),
}
MOVERS = {"del", "move", "mv", "rm", "shred", "truncate", "unlink"}
"""COPIERS: programs that copy files. MOVERS: programs that move, replace or delete files."""
TAKES_TARGET = {"copy", "cp", "install", "rsync", "scp"}
"""Programs whose last argument is the file to write."""
_SHELLS = {"bash", "cmd.exe", "sh"}


def touch_kind(program: str, are_database: Sequence[bool]) -> str:
    """Return COPIED if a program copies the database file, MOVED if it moves or changes the file; else "".

    `are_database` has, for each argument of the program, whether it names the database file.
    """
    if program not in COPIERS | MOVERS or not any(are_database):
        return ""
    is_target = program in TAKES_TARGET and len(are_database) > 1 and are_database[-1]
    return MOVED if program in MOVERS or is_target else COPIED


class LostLocks:
    """Observer of code in this process that opens, moves or deletes the files of an open database."""

    def __init__(self, file: str, statements: FailedStatements) -> None:
        """`file` is the path of the database. `statements` has the process's connections."""
        self._names = tuple(Path(file + suffix).name for suffix in SUFFIXES)
        self._file, self._statements = Path(file), statements
        self._opened = Counter[tuple[str, str]]()
        self._touched = Counter[tuple[str, str, str]]()
        """Number of copies and moves of the database file, by kind, line, and program or audit event."""
        self._removed = Counter[tuple[str, str]]()
        """Number of calls that deleted or moved -wal or -shm, by file name and line."""

    def install(self) -> None:
        """Observe this process from now on, permanently.

        Do nothing on Windows, where closing a file drops no locks of other descriptors.
        """
        if sys.platform != "win32":
            sys.addaudithook(self._hook)
            self._statements.on_open = self._note_libraries

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event in _STARTS:
            self._note_program(event, args)
        if event in _REMOVALS:
            self._note_move(event, args)
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

    def _note_program(self, event: str, args: tuple[Any, ...]) -> None:
        """Record the start of a program in COPIERS or MOVERS that touches the database file.

        Other programs do not count, because they may open the file with SQLite.
        """
        with suppress(Exception):  # The arguments may have any type.
            command, folder = (args[0], None) if event == "os.system" else (args[1], args[2])
            for words in commands_in(command):
                if kind := self._kind_of(words, Path(os.fsdecode(folder or "."))):
                    self._touched[kind, self._user_line(), Path(words[0]).name] += 1

    def _kind_of(self, words: list[str], folder: Path) -> str:
        program, *arguments = words
        program = Path(program).name.removesuffix(".exe")
        are_database = [self._is_database(folder / word.removeprefix("if=")) for word in arguments]
        kind = touch_kind(program, are_database)
        if kind != COPIED:
            return kind
        # A copy is correct if this process holds the write lock, and the program also copies the WAL, unless
        # the WAL is empty.
        wal = Path(f"{self._file}-wal")
        has_wal = any(word.endswith(wal.name) for word in arguments) or not wal.exists()
        is_complete = has_wal or not wal.stat().st_size
        return "" if is_complete and self._statements.holds_write_lock(self._file.name) else COPIED

    def _note_move(self, event: str, args: tuple[Any, ...]) -> None:
        paths = [path for path in args[:2] if isinstance(path, str | bytes | os.PathLike)]
        if any(self._is_database(Path(os.fsdecode(path))) for path in paths) and self._file.exists():
            self._touched[MOVED, self._user_line(), event] += 1

    def _is_database(self, path: Path) -> bool:
        return path.name == self._file.name and self._is_ours(path)

    def _user_line(self) -> str:
        line = self._statements.lines.line(sys._getframe(2))
        return self._statements.lines.text(line) if line else ""

    def _is_ours(self, path: Path) -> bool:
        with suppress(OSError):
            return path.name in self._names and path.parent.resolve() == self._file.parent.resolve()
        return False

    def _libraries(self) -> set[str]:
        return self._statements.open_libraries(self._file.name)

    def _note_libraries(self) -> None:
        """Record that sqlite3 and apsw both have the database open, with different SQLite libraries.

        If apsw does not include SQLite ("amalgamation"), it may use the same library as sqlite3.
        """
        if len(self._libraries()) > 1 and import_module("apsw").using_amalgamation:
            self._opened[LIBRARIES, ""] += 1

    def records(self) -> list[PlainObservation]:
        """Return the causes and signs of lost locks. Call this method before the connections are closed."""
        records: list[PlainObservation] = [
            (LOST_LOCKS, kind, count, "", {"file": self._file.name, "at": at, "program": program})
            for (kind, at, program), count in self._touched.items()
        ]
        for (name, at), count in self._opened.items():
            kind = LIBRARIES if name == LIBRARIES else CLOSED
            records.append((LOST_LOCKS, kind, count, "", {"file": name, "at": at}))
        for (name, at), count in self._removed.items():
            records.append((LOST_LOCKS, DELETED, count, "", {"file": name, "at": at or "the code"}))
        if names := " and ".join(self._deleted()):
            records.append((LOST_LOCKS, DELETED, 1, "", {"file": names, "at": ""}))
        return records

    def _deleted(self) -> Iterator[str]:
        """Yield the names of deleted database files that this process has open; none without /proc."""
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


def commands_in(command: Any) -> list[list[str]]:
    """Return the words of each command in `command`: a shell's command line, or a program with arguments."""
    if isinstance(command, str | bytes | os.PathLike):
        parts = re.split(r"&&|\|\||[;|&\n]", os.fsdecode(command))
        return [words for part in parts if (words := shlex.split(part))]
    words = [os.fsdecode(word) for word in command]
    if words[1:2] in (["-c"], ["/c"]) and Path(words[0]).name in _SHELLS:
        return commands_in(words[2])
    return [words] if words else []
