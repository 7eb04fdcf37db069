"""What a case of the experiment with commands says beside what all cases say."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import Any

from sqlstress.options.option import LOAD, REST, SWEEP, option
from sqlstress.options.parsing import duration, shown, switch
from sqlstress.own.data import Data, DataOptions, name
from sqlstress.own.where import NOWHERE, Where

NOTHING = "does nothing"
MOST_WORDS = 1000
MOST_BYTES = 100_000
"""Of all words together: less than any system takes."""


def words(value: Any) -> tuple[str, ...]:
    """Read a program and its words."""
    found = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not all(isinstance(one, str) and "\0" not in one for one in found):
        raise ValueError(f"{shown(value)} is not a list of words: the program, and each of its words")
    if len(found) > MOST_WORDS or sum(len(one.encode(errors="replace")) for one in found) > MOST_BYTES:
        raise ValueError(f"that are more than {MOST_WORDS:,} words, or {MOST_BYTES:,} bytes")
    return found


@dataclass(frozen=True, slots=True)
class Command:
    """The experiment with commands."""

    data: Data = field(default_factory=Data)
    """The database that they find, and what must hold of it."""
    command: tuple[str, ...] = option(
        words,
        (),
        LOAD,
        "The program and its words, behind --: {n}, {worker}, {db} and {random:1:1000} stand for values, {{ "
        "for a brace.",
        metavar="COMMAND...",
        argument=REST,
        meaning="The program and its words, with what stands for values; none: one that does nothing.",
    )
    stdin: str | None = option(
        name,
        None,
        LOAD,
        "What each command reads as its standard input, from the beginning; nothing if not given.",
        metavar="FILE",
        meaning="The file that each command reads as its standard input; None: nothing.",
    )
    timeout_s: float = option(
        duration(0.01),
        "10s",
        LOAD,
        "How long a command may take: then it is ended, with all that it started, and has failed.",
        name="timeout",
        metavar="TIME",
        meaning="How long a command may take before it is ended, in seconds.",
    )

    @property
    def called(self) -> str:
        """The command, as it is typed."""
        words = shlex.join(self.command)
        return f"{words} < {shlex.quote(self.stdin)}" if self.stdin else words or NOTHING


@dataclass(frozen=True, slots=True)
class Extra(DataOptions):
    """Options that only say which cases there are, and what is read."""

    alone: bool | None = option(
        switch,
        None,
        SWEEP,
        "Leave out the command that does nothing, which shows what starting a process costs.",
        flag=True,
    )
    where: Where = NOWHERE
