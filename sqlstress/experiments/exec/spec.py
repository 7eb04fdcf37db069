"""Options of the experiment `exec`, and the case fields that they set."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import Any

from sqlstress.options.option import LOAD, REST, SWEEP, option
from sqlstress.options.parsing import abbreviate, duration, switch, whole_number
from sqlstress.request import Request
from sqlstress.user_work import options
from sqlstress.user_work.options import NO_TARGETS, Data, DataOptions, TargetOptions

EMPTY_COMMAND = "empty command"
MAX_WORDS = 1000
MAX_BYTES = 100_000
"""Maximum size of a command, in bytes. Linux and macOS have higher limits."""


def words(value: Any) -> tuple[str, ...]:
    """Return the words of a command. Raises ValueError if `value` is not a valid command."""
    command = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not all(isinstance(word, str) and "\0" not in word for word in command):
        raise ValueError(f"{abbreviate(value)} is not a list of texts: the program and its arguments")
    if len(command) > MAX_WORDS or sum(len(word.encode(errors="replace")) for word in command) > MAX_BYTES:
        raise ValueError(f"the command has more than {MAX_WORDS:,} words or {MAX_BYTES:,} bytes")
    return command


@dataclass(frozen=True, slots=True)
class Command:
    """Command that each operation runs, and its database."""

    data: Data = field(default_factory=Data)
    """Database of the commands, and the checks of its data."""
    command: tuple[str, ...] = option(
        words,
        (),
        LOAD,
        "The program and its arguments, after --. {n}, {worker}, {db}, {inner} and {random:1:1000} are "
        "replaced by values. Write {{ for a brace.",
        metavar="COMMAND...",
        argument=REST,
        meaning="The program and its arguments, with placeholders; empty means a command that does nothing.",
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
        meaning="Whether the program is started once per process and answers with a line for each operation.",
    )
    inner: int = option(
        whole_number(1, 10**6),
        1,
        LOAD,
        "Operations that one command does; TPS counts each. {inner} is replaced by N.",
        metavar="N",
        meaning="Number of operations that one command does.",
    )
    where: bool = options.lock_watch_option()

    @property
    def called(self) -> str:
        """Command line as typed in a shell, or "empty command"."""
        words = shlex.join(self.command)
        return f"{words} < {shlex.quote(self.stdin)}" if self.stdin else words or EMPTY_COMMAND


@dataclass(frozen=True, slots=True)
class CommandSelection(DataOptions):
    """Options that select cases and files, and are not stored in cases."""

    alone: bool | None = option(
        switch,
        None,
        SWEEP,
        "Do not measure the empty command, which shows the cost of starting a process.",
        flag=True,
    )
    where: TargetOptions = NO_TARGETS


ExecRequest = Request[Command, CommandSelection]
