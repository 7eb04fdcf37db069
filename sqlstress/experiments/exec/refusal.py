"""Search in a command's text for the file given by --database, and for options that disable locks."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import repeat
from pathlib import Path

from sqlstress.errors import UsageError

_PIECE = re.compile(r"[^\s'\"=;,()<>|&?`]+")
"""Pattern of a part of a word that may be a path, such as app.db in "--db=app.db"."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
LARGEST_SCRIPT = 1 << 20
"""Maximum size of a file that counts as a script, in bytes."""
VARIABLE = "SQLSTRESS_DATABASE"
"""Environment variable from which every command can read the path of the trial's database."""
_VARIABLE_WITH_DEFAULT = rf"\b{VARIABLE}\b[\s\"'`\])}}:=?|,/-]*?(?:\bor\b[\s\"'`(]*)?"
"""Pattern of the variable before a default value: ${NAME:-path}, get("NAME", "path")."""
CURE = f"Write {{db}} in its place, or read the variable {VARIABLE}"


def refuse_original(command: Sequence[str], database: str) -> None:
    """Raise UsageError if a command or one of its scripts contains the path of the original database."""
    for word in command:
        for piece in (word, *_PIECE.findall(word)):
            if any(_is_same(path, database) for path in _paths(piece)):
                raise UsageError(
                    f"the command names {piece[:100]!r}, which is the original --database, not its copy. "
                    f"{CURE}."
                )
    paths = {os.path.abspath(database), os.path.realpath(database)}  # noqa: PTH100
    for script in scripts(command):
        text = script.read_text(encoding="utf-8", errors="replace")
        if "\0" not in text and any(map(_contains_path, paths, repeat(text))):
            raise UsageError(
                f"{str(script)[:100]!r} names the original --database, {os.path.realpath(database)!r:.200}, "
                f"not its copy. In its place, read the variable {VARIABLE}."
            )


_LOCKLESS = re.compile(r"\b(nolock=(?:1|on|yes|true)|vfs=unix-none|immutable=(?:1|on|yes|true))\b")


def lockless_place(command: Sequence[str]) -> str:
    """Return the place of an option that disables SQLite's locks, such as "count.py:6 (nolock=1)".

    The place is a line of a script, or the command itself; empty if there is no such option.
    """
    for script in scripts(command):
        text = script.read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines() if "\0" not in text else (), 1):
            if found := _LOCKLESS.search(line):
                return f"{script.name}:{number} ({found[1]})"
    words = filter(None, map(_LOCKLESS.search, command))
    return next((f"The command ({found[1]})" for found in words), "")


def _contains_path(path: str, text: str) -> bool:
    """Return whether a script contains a path.

    A path that is only the default value of SQLSTRESS_DATABASE does not count, such as the path in
    ${SQLSTRESS_DATABASE:-path}.
    """
    name = re.escape(path) + r"(?![\w.-])"
    return re.search(name, re.sub(_VARIABLE_WITH_DEFAULT + name, "", text)) is not None


def _paths(piece: str) -> Iterator[str]:
    """Yield the possible paths in a part of a word, such as app.db in file:app.db?mode=rw."""
    yield piece
    if match := _URL.match(piece):
        rest = piece[match.end() :].partition("?")[0]
        yield rest
        for _ in range(min(3, len(rest) - len(rest.lstrip("/")))):
            rest = rest[1:]
            yield rest


def _is_same(piece: str, database: str) -> bool:
    try:
        return os.path.samefile(piece, database)  # noqa: PTH121
    except (OSError, ValueError):
        return False


def scripts(command: Sequence[str]) -> Iterator[Path]:
    """Yield the files that a command names, except for files too large to be scripts."""
    for word in (shutil.which(command[0]) or command[0], *command[1:]):
        with suppress(OSError, ValueError):
            path = Path(word)
            if path.is_file() and path.stat().st_size <= LARGEST_SCRIPT:
                yield path
