"""The user's original database: commands that name it are refused, and a load that touches it is stopped.

Each trial works on a copy. A command can still reach the original: its words or its script may name the
file. The parent compares the original with its state before the load about ten times a second, and the
workers look at the open files of their commands (Linux). No file is opened here: on POSIX the process of the
user that calls `sqlstress.measure` may have a connection to it, and would lose its locks.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from sqlstress.analysis.wording import size
from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.targets.sqlite import open_files

_PIECE = re.compile(r"[^\s'\"=;,()<>|&?`]+")
"""Parts of a word that may be a path: of "--db=app.db", or of a command line for a shell."""
LARGEST_SCRIPT = 1 << 20
"""Size of the largest file that is read as a script, in bytes."""
VARIABLE = "SQLSTRESS_DATABASE"
_CURE = f"Write {{db}} in its place, or read the variable {VARIABLE}"


def refuse_original(command: Sequence[str], database: str) -> None:
    """Raise UsageError if a word of a command, or a script that it names, is the original database."""
    for word in command:
        for piece in _PIECE.findall(word):
            if _is_same(piece.removeprefix("file:"), database):
                raise UsageError(
                    f"the command names {piece[:100]!r}, which is the original --database, not its copy. "
                    f"{_CURE}."
                )
    paths = {os.path.abspath(database), os.path.realpath(database)}  # noqa: PTH100
    for script in _scripts(command):
        text = script.read_text(encoding="utf-8", errors="replace")
        # A script that reads the variable, by its first name too, may name the original for other uses.
        if (
            "\0" not in text
            and not any(map(text.__contains__, (VARIABLE, "SQLSTRESS_DB")))
            and any(path in text for path in paths)
        ):
            raise UsageError(
                f"{str(script)[:100]!r} names the original --database, {os.path.realpath(database)!r:.200}, "
                f"not its copy. {_CURE}."
            )


def _is_same(piece: str, database: str) -> bool:
    """Return whether a path is the file of the database, by any name of it."""
    try:
        return os.path.samefile(piece, database)  # noqa: PTH121
    except (OSError, ValueError):
        return False


def _scripts(command: Sequence[str]) -> Iterator[Path]:
    """Yield the files that a command names and that are small enough for a script."""
    for word in (shutil.which(command[0]) or command[0], *command[1:]):
        with suppress(OSError, ValueError):
            path = Path(word)
            if path.is_file() and path.stat().st_size <= LARGEST_SCRIPT:
                yield path


State = dict[str, tuple[int, int]]
"""Size in bytes and time of the last change in ns, by name: the database, its WAL and its journal."""


def state_of(database: Path) -> State:
    """Return the state of a database and of the files next to it that hold data."""
    state: State = {}
    for suffix in ("", "-wal", "-journal"):
        path = database.with_name(f"{database.name}{suffix}")
        with suppress(OSError):
            found = path.stat()
            state[path.name] = found.st_size, found.st_mtime_ns
    return state


def changes(before: State, now: State) -> str:
    """Return a description of the changes between two states; empty if there are none."""
    texts = []
    for name in dict.fromkeys((*before, *now)):
        old, new = before.get(name), now.get(name)
        if old == new:
            continue
        if old is None or new is None:
            texts.append(f"{name} {'appeared' if new else 'disappeared'}")
        elif old[0] != new[0]:
            texts.append(f"{name} changed from {size(old[0])} to {size(new[0])}")
        else:
            texts.append(f"{name} was written")
    return ", ".join(texts)


class Original:
    """The original during one load. The copy of the trial tells whether the commands use that."""

    def __init__(self, database: str, copy: Path, marker: tuple[str, str]) -> None:
        """`marker` is a variable in the environment of all commands of the trial: name and value."""
        self._path, self._copy, self._marker = Path(os.path.realpath(database)), copy, marker
        self._before, self._copy_before = state_of(self._path), state_of(copy)
        self.unexplained = ""
        """Changes of the original by a program that was not seen; empty if there were none."""

    @property
    def copy_is_untouched(self) -> bool:
        """Whether no file of the copy has changed since the load began."""
        return state_of(self._copy) == self._copy_before

    def check(self, *, opened_by_command: bool, copy_was_opened: bool) -> None:
        """Raise EnvironmentFailure if a command of the trial has opened or changed the original."""
        if opened_by_command:
            raise self._failure("a command has it open")
        now = state_of(self._path)
        if not (changed := changes(self._before, now)):
            return
        users = open_files.openers(self._path)
        ours = [one for one in users.seen if self._is_command(one.pid)] if users else []
        if ours:
            raise self._failure(changed)
        if not (users and users.seen):
            if self.copy_is_untouched and not copy_was_opened:
                raise self._failure(f"{changed}, and no command has used the copy")
            self.unexplained = changed
        self._before = now

    def _is_command(self, pid: int) -> bool:
        name, value = self._marker
        with suppress(psutil.Error, OSError):
            return psutil.Process(pid).environ().get(name) == value
        return False

    def _failure(self, what: str) -> EnvironmentFailure:
        return EnvironmentFailure(
            f"the command uses the original {str(self._path)!r:.200}, not its copy: {what}. The load was "
            f"stopped. {_CURE}"
        )
