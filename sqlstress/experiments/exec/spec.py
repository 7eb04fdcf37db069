"""Options and spec of the experiment with commands."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import Any

from sqlstress.options.option import LOAD, REST, SWEEP, option
from sqlstress.options.parsing import duration, shown, switch, whole
from sqlstress.request import Request
from sqlstress.user_work import options
from sqlstress.user_work.options import NOWHERE, Data, DataOptions, Where

NOTHING = "empty command"
MOST_WORDS = 1000
MOST_BYTES = 100_000
"""Of all words together: less than any system takes."""


def words(value: Any) -> tuple[str, ...]:
    """Read a program and its words."""
    found = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not all(isinstance(one, str) and "\0" not in one for one in found):
        raise ValueError(f"{shown(value)} is not a list of texts: the program and its arguments")
    if len(found) > MOST_WORDS or sum(len(one.encode(errors="replace")) for one in found) > MOST_BYTES:
        raise ValueError(f"the command has more than {MOST_WORDS:,} words or {MOST_BYTES:,} bytes")
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
        "The program and its arguments, after --. {n}, {worker}, {db}, {inner} and {random:1:1000} are "
        "replaced by values. Write {{ for a brace.",
        metavar="COMMAND...",
        argument=REST,
        meaning="The program and its arguments, with placeholders; empty: a command that does nothing.",
    )
    stdin: str | None = option(
        options.name,
        None,
        LOAD,
        "File for the standard input of each command. Default: empty input.",
        metavar="FILE",
        meaning="File for the standard input of each command; None: empty input.",
    )
    timeout_s: float = option(
        duration(0.01),
        "10s",
        LOAD,
        "Time limit of a command. A command that exceeds it is killed, with its children, and counts as "
        "failed.",
        name="timeout",
        metavar="TIME",
        meaning="Time limit of a command, in seconds.",
    )

    lines: bool = option(
        switch,
        False,
        LOAD,
        "Start the program once per process. It reads a line, works, and answers with the line ok or "
        "error MESSAGE.",
        flag=True,
        meaning="Whether the program is started once, and answers a line for each operation.",
    )
    inner: int = option(
        whole(1, 10**6),
        1,
        LOAD,
        "Operations that one command does; TPS counts each. {inner} is replaced by N.",
        metavar="N",
        meaning="Operations that one command does.",
    )
    where: bool = options.where_option()

    @property
    def called(self) -> str:
        """The command, as it is typed."""
        words = shlex.join(self.command)
        return f"{words} < {shlex.quote(self.stdin)}" if self.stdin else words or NOTHING


@dataclass(frozen=True, slots=True)
class CaseSelection(DataOptions):
    """Options that only say which cases there are, and what is read."""

    alone: bool | None = option(
        switch,
        None,
        SWEEP,
        "Do not measure the empty command, which shows the cost of starting a process.",
        flag=True,
    )
    where: Where = NOWHERE


ExecRequest = Request[Command, CaseSelection]
