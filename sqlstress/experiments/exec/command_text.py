"""Facts in the text of a command and its scripts: busy timeouts, copies and moves of the database.

The text is only read, never run. Facts that the text does not show are unknown, such as the value of a
variable that a script reads from a file. In texts and words, DATABASE ("{db}") replaces the path of the
database.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, dropwhile, pairwise, zip_longest
from pathlib import Path
from typing import NamedTuple

from sqlstress.experiments.exec import Timeouts
from sqlstress.experiments.exec.refusal import LARGEST_SCRIPT, VARIABLE, scripts
from sqlstress.experiments.exec.template import DATABASE
from sqlstress.recording import MOVED
from sqlstress.recording.lost_locks import touch_kind

COMMAND = "the command"
"""Place (`TextLine.at`, `Touch.at`) of a text in the command itself, not in a file."""
_COMMENT = re.compile(r"\s*(#|--\s|//)")
_IMPORT = re.compile(r"\s*(import|from)\s")
_OWN_LOCK = re.compile(r"\b(flock|lockf|lockfile|filelock|FileLock)\b")
_SHELLS = {"bash", "dash", "sh"}
_SQL_FILE = re.compile(r"(?<![\w./-])[\w./-]+\.sql\b")


class TextLine(NamedTuple):
    """Line of a script, or of code in the command itself, such as CODE in `sh -c CODE`."""

    at: str
    """File and line, such as "import.sh:9", or COMMAND."""
    text: str


class Touch(NamedTuple):
    """Program in a script that copies, moves, replaces or deletes the database file."""

    kind: str
    """COPIED or MOVED."""
    program: str
    """Name of the program, such as "cp"."""
    at: str
    """File and line that run the program, such as "import.sh:9", or COMMAND."""


Text = Sequence[TextLine]
"""Text of a file, or of the command's words: its lines without comments."""


class CommandText:
    """Text of a command: its words, the scripts that the words name, and the SQL files that these name."""

    def __init__(self, command: Sequence[str], stdin: str | None = None) -> None:
        """Read the scripts and SQL files. `stdin` is the file of the command's standard input, if any."""
        self.arguments = arguments_of(command)
        """Arguments of the command's script, or of its program if there is no script."""
        spoken = [TextLine(COMMAND, line) for word in command if " " in word for line in word.splitlines()]
        self.python: list[Text] = [spoken] if is_python(spoken) else []
        """Texts in Python: searched for busy timeouts, transactions and locks of their own, such as FileLock.
        """
        self.shell = list[Text]()
        """Other texts: searched for copies of the database, too. Known shell variables have been replaced."""
        self.sql = dict[str, str]()
        """Contents of the SQL files that the texts name, by file name."""
        if not self.python:
            self.shell = [self._expanded([TextLine(COMMAND, " ".join(command)), *spoken])]
        for file in dict.fromkeys([*scripts(command), *([Path(stdin)] if stdin else [])]):
            self._add(file)

    def _expanded(self, text: Text) -> Text:
        values = {str(place): word for place, word in enumerate(self.arguments, 1)}
        return [*expanded(text, {**values, VARIABLE: DATABASE})]

    def _add(self, file: Path) -> None:
        text = _lines_without_comments(file)
        if is_python(text):
            self.python.append(text)
        else:
            self.shell.append(self._expanded(text))
        for name in {name for line in text for name in _SQL_FILE.findall(line.text)}:
            for path in (Path(name), file.parent / name):
                if path.name not in self.sql and path.is_file():
                    self.sql[path.name] = "\n".join(line.text for line in _lines_without_comments(path))

    def touches(self) -> list[Touch]:
        """Return the commands such as cp and mv that copy or move the database file, without duplicates."""
        return [*dict.fromkeys(chain.from_iterable(map(shell_touches, self.shell)))]

    @property
    def has_own_lock(self) -> bool:
        """Whether the text uses a lock such as flock, which may keep commands from running at once."""
        return any(_OWN_LOCK.search(line.text) for line in chain(*self.shell, *self.python))

    def timeouts(self) -> Timeouts:
        """Return the facts about busy timeouts and transactions in the text."""
        lines = [*chain.from_iterable((*self.shell, *self.python))]
        lines += [TextLine(name, line) for name, text in self.sql.items() for line in text.splitlines()]
        starts = [*chain.from_iterable(shell_starts(text, self.sql) for text in self.shell)]
        unset = [at for at, text in starts if not _HAS_TIMEOUT.search(text)]
        return next(_short_timeouts(lines), Timeouts())._replace(
            shells="yes" if starts else "",
            unset_at=unset[0] if unset else "",
            bail="yes" if starts and all(_BAIL.search(text) for _, text in starts) else "",
            deferred="yes" if any(_DEFERRED.search(line.text) for line in lines) else "",
        )


def arguments_of(command: Sequence[str]) -> Sequence[str]:
    """Return the arguments of the command's script; without a script, the arguments of its program.

    The script is a file or -c CODE. For `python a.py x`, the only argument is x.
    """
    for place, word in enumerate(command[1:], 1):
        if command[place - 1] == "-c":
            # In `sh -c CODE NAME ARGUMENT`, NAME becomes $0, so the arguments begin after NAME.
            return command[place + 1 + (Path(command[0]).name in _SHELLS) :]
        with suppress(OSError, ValueError):
            if Path(word).is_file():
                return command[place + 1 :]
    return command[1:]


def is_python(text: Text) -> bool:
    return any(_IMPORT.match(line.text) for line in text)


def _lines_without_comments(file: Path) -> Text:
    with suppress(OSError):
        if file.stat().st_size <= LARGEST_SCRIPT:
            text = file.read_text(encoding="utf-8", errors="replace")
            numbered = enumerate(text.splitlines() if "\0" not in text else (), 1)
            return [
                TextLine(f"{file.name}:{number}", line)
                for number, line in numbered
                if not _COMMENT.match(line)
            ]
    return []


# Shell commands that copy or move the database file:


_VALUE = r"[^\s;&|]+|\"[^\"]*\"|'[^']*'"
_ASSIGNMENT = re.compile(rf"\s*(?:export\s+|local\s+|readonly\s+)?(\w+)=({_VALUE})\s*(?:#.*)?$")
_REFERENCE = re.compile(r"\$(?:\{(\w+)(?::?-[^}]*)?\}|(\w+))")
_PREFIXES = {
    *("if", "then", "else", "do", "while", "until", "!", "{"),
    *("exec", "sudo", "time", "nice", "command"),
}
"""Shell words that may precede a command."""


def expanded(lines: Iterable[TextLine], variables: Mapping[str, str]) -> Iterator[TextLine]:
    """Yield the lines of a shell script with variables replaced by their values, if known.

    `variables` has the values before the first line. Assignments in the script set further values.
    """
    values = dict(variables)
    for line in lines:
        text = _REFERENCE.sub(lambda match: values.get(match[1] or match[2], match[0]), line.text)
        if assigned := _ASSIGNMENT.match(text):
            values[assigned[1]] = assigned[2].strip("\"'")
        yield line._replace(text=text)


def shell_touches(lines: Iterable[TextLine]) -> Iterator[Touch]:
    """Yield the commands of a shell script that copy or move the database file."""
    for line in lines:
        for words in commands_in(line.text):
            if touch := touch_of(words):
                yield Touch(*touch, line.at)


def commands_in(text: str) -> Iterator[list[str]]:
    """Yield the simple commands in a line of shell, as words; < and > are also words."""
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
    """Return (COPIED or MOVED, program) for a command that copies or moves the database, else None.

    Return None for a copy that includes the WAL, because this copy may be complete.
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
    kind = touch_kind(program, [word == DATABASE for word in files])
    return (kind, program) if kind else None


# Busy timeouts and transactions:


SHORT_MS = 100
"""Minimum sensible busy timeout, in ms. A shorter timeout is probably a mistake: a commit may take longer."""
_TIMEOUT_MS = re.compile(r"busy_?timeout['\"]?\s*[=(:,]\s*(?:\w+\s*,\s*)?(\d+)\b|\.timeout\s+(\d+)\b", re.I)
"""Pattern of a busy timeout in ms: PRAGMA busy_timeout = 5, busy_timeout(db, 5), .timeout 5."""
_TIMEOUT_S = re.compile(r"\bsqlite3\.connect\(.*\btimeout\s*=\s*(\d+(?:\.\d*)?|\.\d+)")
"""Pattern of a busy timeout in seconds, of Python's sqlite3."""
_HAS_TIMEOUT = re.compile(r"busy_?timeout|\.timeout\b", re.I)
_SHELL = re.compile(r"(?:^|[\s;&|(`\"'/{])sqlite3(?=\s)")
"""Pattern of a start of SQLite's shell in a command line."""
_IS_ON_DATABASE = re.compile(rf"{re.escape(DATABASE)}(?![\w.*/-])")
_DEFERRED = re.compile(r"\bBEGIN\b(?!\s+(IMMEDIATE|EXCLUSIVE))|\bSAVEPOINT\b", re.I)
_BAIL = re.compile(r"-bail\b|\.bail\s+on\b")


def _short_timeouts(lines: Sequence[TextLine]) -> Iterator[Timeouts]:
    for line in lines:
        for pattern, unit_ms in ((_TIMEOUT_MS, 1), (_TIMEOUT_S, 1000)):
            for match in pattern.finditer(line.text):
                value_ms = float(next(filter(None, match.groups()))) * unit_ms
                if value_ms < SHORT_MS:
                    text = match[0] if unit_ms == 1 else match[0][match[0].rindex("timeout") :]
                    if line.text[: match.start()].rstrip().upper().endswith("PRAGMA"):
                        text = f"PRAGMA {text}"
                    yield Timeouts(text, line.at, f"{value_ms:g}", "yes" if unit_ms > 1 else "")


def shell_starts(text: Text, sql: dict[str, str]) -> list[tuple[str, str]]:
    """Return (place, text) for each start of SQLite's shell in `text`, on the database if this is known.

    The place is the file and line, or COMMAND. The text of a start ends before the next start, and includes
    the contents of the SQL files that it names (`sql` has the contents by name). If at least one start names
    the database, return only the starts that name it.
    """
    found: list[tuple[str, str]] = []
    for line in text:
        starts = [match.start() for match in _SHELL.finditer(line.text)]
        if found:
            at, before = found[-1]
            found[-1] = at, f"{before}{line.text[: starts[0] if starts else None]}\n"
        found += [(line.at, line.text[start:end]) for start, end in zip_longest(starts, starts[1:])]
    with_files = [
        (at, part + "".join(content for name, content in sql.items() if name in part)) for at, part in found
    ]
    return [start for start in with_files if _IS_ON_DATABASE.search(start[1])] or with_files
