"""Shell commands in a text that copy or move the database file, found without running the text."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import dropwhile, pairwise
from pathlib import Path
from typing import NamedTuple

from sqlstress.experiments.exec.template import DATABASE
from sqlstress.user_work import COPIED, MOVED
from sqlstress.user_work.lost_locks import COPIERS, MOVERS, TAKES_TARGET


class TextLine(NamedTuple):
    """Line of a text."""

    at: str
    """Place, such as "import.sh:9"."""
    text: str


class Touch(NamedTuple):
    """Program or function in a text that copies the database file, or moves, replaces or deletes it."""

    kind: str
    """COPIED or MOVED."""
    program: str
    """Name of the program or function, such as "cp" or "shutil.copy"."""
    at: str
    """Place in the text."""


_VALUE = r"[^\s;&|]+|\"[^\"]*\"|'[^']*'"
_ASSIGNMENT = re.compile(rf"\s*(?:export\s+|local\s+|readonly\s+)?(\w+)=({_VALUE})\s*(?:#.*)?$")
_REFERENCE = re.compile(r"\$(?:\{(\w+)(?::?-[^}]*)?\}|(\w+))")
_PREFIXES = {
    *("if", "then", "else", "do", "while", "until", "!", "{"),
    *("exec", "sudo", "time", "nice", "command"),
}
"""Words of a shell that may precede a command."""


def expanded(lines: Iterable[TextLine], variables: Mapping[str, str]) -> Iterator[TextLine]:
    """Yield the lines of a shell script with the values of its variables; unknown variables stay.

    `variables` has DATABASE as the value of each variable with the path of the database.
    """
    values = dict(variables)
    for line in lines:
        text = _REFERENCE.sub(lambda match: values.get(match[1] or match[2], match[0]), line.text)
        if assigned := _ASSIGNMENT.match(text):
            values[assigned[1]] = assigned[2].strip("\"'")
        yield line._replace(text=text)


def shell_touches(lines: Iterable[TextLine]) -> Iterator[Touch]:
    """Yield the commands of a shell script that copy or move the database file.

    The lines have DATABASE for the path of the database, see `expanded`.
    """
    for line in lines:
        for words in commands_in(line.text):
            if touch := touch_of(words):
                yield Touch(*touch, line.at)


def commands_in(text: str) -> Iterator[list[str]]:
    """Yield the simple commands in a line for a shell, as words; < and > are words, too."""
    words: list[str] = []
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, "#"
    with suppress(ValueError):  # Quotes may be open at the end of the line.
        for word in lexer:
            if set(word) <= {*";|&()"}:
                yield words
                words = []
            else:
                words.append(word)
    yield words


def touch_of(words: Sequence[str]) -> tuple[str, str] | None:
    """Return the kind and the program of a command that copies or moves the database, else None.

    `words` have DATABASE for the path of the database. A copy that includes the WAL is left out.
    """
    words = [*dropwhile(_PREFIXES.__contains__, words)]
    if not words:
        return None
    program, *arguments = words
    program = Path(program).name
    files = [word.removeprefix("if=") for word in arguments]
    if any(word.startswith((f"{DATABASE}-wal", f"{DATABASE}*")) for word in files):
        return None
    if (">", DATABASE) in pairwise(arguments):
        return MOVED, f"{program} >"
    if DATABASE not in files or program not in COPIERS | MOVERS:
        return None
    is_target = program in TAKES_TARGET and len(files) > 1 and files[-1] == DATABASE
    return MOVED if program in MOVERS or is_target else COPIED, program
