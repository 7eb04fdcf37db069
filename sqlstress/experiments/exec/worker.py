"""A worker's half of the experiment with commands: each operation is a process, from its start to its end."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlstress.experiments.exec.ear import Ear
from sqlstress.experiments.exec.messages import Messages
from sqlstress.experiments.exec.nothing import does_nothing
from sqlstress.experiments.exec.starter import Ended, Starter
from sqlstress.experiments.exec.template import Given, filled, parsed
from sqlstress.experiments.exec.topics import ENDED, EXIT_CODE, LEFT_BEHIND, STDERR, TOO_LATE
from sqlstress.own.loading import environment
from sqlstress.own.source import OwnSource
from sqlstress.system.child import when_orphaned

if TYPE_CHECKING:
    from sqlstress.engine.protocols import Chunk, Findings, Stamps
    from sqlstress.report.case import Case
    from sqlstress.targets.directions import Directions
    from sqlstress.targets.dry.place import DryPlace
    from sqlstress.targets.place import SqlPlace

DATABASE, TRIAL = "SQLSTRESS_DB", "SQLSTRESS_TRIAL"
"""Variables of the environment of a command: where the database is, and to which trial it belongs."""


class Failed(Exception):
    """A command that did not exit with 0, or took too long."""


class ExecSource(OwnSource):
    """Runs commands, one after the other."""

    def __init__(
        self, case: Case, place: SqlPlace | DryPlace, worker: int, salt: int, shared: tuple[Any, ...]
    ) -> None:
        super().__init__(case, worker, salt, ("command",), (1,))
        self._words = parsed(case.spec.command or does_nothing())
        self._number = worker - case.concurrency
        self._db, self._commands = "", None
        if place.stores:
            found = place.directions()
            self._db = found.address
            self._commands = Commands(case, found, shared[-1])
        self.calls = (self._commands.run if self._commands else _nothing,)

    def prepared(self, picks: Sequence[int]) -> list[list[str]]:
        return [self._next() for _ in picks]

    def _next(self) -> list[str]:
        # Each worker has numbers of its own, so that none need be asked for.
        self._number += self.case.concurrency
        return filled(self._words, Given(self._number, self.worker, self._db, self.random))

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        """Take the numbers back of commands that were not run."""
        self._number -= (len(chunk.kinds) - done) * self.case.concurrency

    def was_busy(self, error: Exception) -> bool:
        return isinstance(error, Failed)

    def busy_counts(self) -> tuple[int, int]:
        return 0, 0

    def effective(self) -> dict[str, str]:
        return {}

    def findings(self) -> Findings:
        if self._commands:
            self._commands.close()
            self.seen.sightings = self._commands.sightings()
        return super().findings()

    def close(self) -> None:
        """Everything is closed when the findings are known."""


class Commands:
    """Runs commands with one environment, and counts how they ended and what they said."""

    def __init__(self, case: Case, directions: Directions, trial: str) -> None:
        _let_interrupts_through()
        variables = {**environment(directions, DATABASE, os.environ), TRIAL: trial}
        self._messages, self._codes = Messages(directions.hidden), Counter[int]()
        self._too_late = self._left_behind = 0
        self._ear = Ear(self._messages.add)
        self._starter = Starter(variables, case.spec.stdin, self._ear.theirs, case.spec.timeout_s)
        when_orphaned(self._starter.end)

    def run(self, words: list[str]) -> None:
        """Run a command. Raises Failed."""
        ended = self._starter.run(words)
        self._ear.ended()
        self._count(ended)
        if ended.code or ended.too_late:
            raise Failed

    def _count(self, ended: Ended) -> None:
        self._left_behind += ended.left_behind
        if ended.too_late:
            self._too_late += 1
        else:
            self._codes[ended.code] += 1

    def sightings(self) -> list[tuple[str, str, int, str, dict[str, str]]]:
        """Return what is known of all commands, as the fields of Sightings."""
        ends = ((TOO_LATE, self._too_late), (LEFT_BEHIND, self._left_behind))
        return [
            *((EXIT_CODE, named(code), count, "", {}) for code, count in sorted(self._codes.items())),
            *((ENDED, why, count, "", {}) for why, count in ends if count),
            *(
                (STDERR, kind, count, self._messages.examples[kind], {})
                for kind, count in self._messages.counts.items()
            ),
        ]

    def close(self) -> None:
        """Hear the last of it."""
        self._starter.close()
        self._ear.close()


def named(code: int) -> str:
    """Return an exit code; where a signal ended the command, its name."""
    if code >= 0 or sys.platform == "win32":
        return str(code)
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _let_interrupts_through() -> None:
    """Let commands begin with SIGINT as in a shell: what a worker does with it would be handed on to them."""
    if sys.platform != "win32":
        signal.signal(signal.SIGINT, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _nothing(params: object) -> None:
    """Stand for a command where nothing is stored."""
