"""A worker's half of the experiment with commands: each operation is a process, from its start to its end.

With --lines it is a line that a process reads and answers.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.exec import ANSWER, ENDED, EXIT_CODE, LEFT_BEHIND, STAYED, STDERR, TOO_LATE
from sqlstress.experiments.exec.programs import WORKED, Dialogue, Ear, Ended, Opened, Starter
from sqlstress.experiments.exec.template import Given, filled, parsed
from sqlstress.system.child import when_orphaned
from sqlstress.user_work.loading import environment
from sqlstress.user_work.messages import OTHERS, kind_of, line_of
from sqlstress.user_work.source import Kinds, UserSource

if TYPE_CHECKING:
    from sqlstress.engine.protocols import Chunk, Findings, Stamps
    from sqlstress.report.case import Case
    from sqlstress.targets.dry import DryPlace
    from sqlstress.targets.place import SqlPlace
    from sqlstress.targets.views import Directions

TRIAL = "SQLSTRESS_TRIAL"
"""The variable in the environment of a command that has the trial to which it belongs."""
FAILED_ALIKE = 10
"""When so many of a worker have failed in the same way from the first one on, none will ever work."""
_BUSY = re.compile("locked|busy", re.IGNORECASE)


class Failed(Exception):
    """An operation that did not end well, or took too long."""


def open_source(*given: Any) -> ProgramSource:
    """Return what a case asks for."""
    case: Case = given[0]
    return LineSource(*given) if case.spec.lines else CommandSource(*given)


class ProgramSource(UserSource):
    """Has programs do operations, one after the other, and counts how they ended and what they said."""

    _topic, _what = STDERR, "commands"
    _ear: Ear

    def __init__(
        self, case: Case, place: SqlPlace | DryPlace, worker: int, salt: int, shared: tuple[Any, ...]
    ) -> None:
        super().__init__(case, worker, salt, {"command": 1})
        self._words = parsed(case.spec.command or _does_nothing())
        self._number = worker - case.concurrency
        self._address = ""
        self._codes, self._messages = Counter[int](), Kinds(OTHERS)
        self._ends = Counter[str]()
        self._failed = 0
        *_, self._flags, trial = shared
        # Where nothing is stored no command is run.
        self._runs = place.stores
        self.calls: Sequence[Callable[[Any], Any]] = (self._run if self._runs else lambda _: None,)
        if place.stores:
            self._begin(place.directions(), trial)

    def _begin(self, directions: Directions, trial: str) -> None:
        if sys.platform != "win32":
            # Commands begin with SIGINT as in a shell: what a worker does with it would be handed on to them.
            signal.signal(signal.SIGINT, lambda *_: None)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        self._address = directions.address
        self._ear = Ear(lambda text: self._keep(line_of(directions.hidden(text))))
        self._open({**environment(directions, os.environ), TRIAL: trial})

    def _open(self, variables: dict[str, str]) -> None:
        """Get ready to run programs with these variables."""
        raise NotImplementedError

    def _close(self) -> None:
        """Let no program run any more."""
        raise NotImplementedError

    def _run(self, given: Any) -> None:
        """Do an operation. Raises Failed, and EnvironmentFailure when it is clear that none works."""
        raise NotImplementedError

    def _keep(self, line: str) -> None:
        if line:
            self._messages.add(kind_of(line), line)

    def _next_number(self) -> int:
        # Each worker has numbers of its own, so that none need be asked for.
        self._number += self.case.concurrency
        return self._number

    def _given(self, number: int) -> Given:
        return Given(number, self.worker, self._address, self.case.spec.inner, self.random)

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        """Take the numbers back of operations that were not done."""
        self._number -= (len(chunk.kinds) - done) * self.case.concurrency

    def _count(self, ended: Ended) -> None:
        why = TOO_LATE if ended.too_late else STAYED if ended.stayed else ""
        if why:
            self._ends[why] += 1
        else:
            self._codes[ended.code] += 1
        self._ends[LEFT_BEHIND] += ended.left_behind

    def _fail(self) -> None:
        """Raise Failed; EnvironmentFailure if all by now failed alike, and not for a lock that was taken."""
        self._failed += 1
        hopeless = self._failed == FAILED_ALIKE and self.case.max_failed < 1
        if not hopeless or self._flags[WORKED] or self._ends[TOO_LATE] or len(self._codes) > 1:
            raise Failed
        self._ear.caught_up()
        examples = list(self._messages.examples.values())
        if len(examples) > 1 or any(map(_BUSY.search, examples)):
            raise Failed
        (code,) = self._codes or (0,)
        name = named(code)
        ending = f", with exit code {code}" if code > 0 or name == str(code) else f", by {name}"
        words = f": {examples[0].removesuffix('.')}" if examples else ""
        raise EnvironmentFailure(
            f"the first {FAILED_ALIKE} {self._what} failed in the same way{ending if self._codes else ''}"
            f"{words}. Fix the command, or use --max-failed 100% if it is meant to fail"
        )

    def was_busy(self, error: Exception) -> bool:
        return isinstance(error, Failed)

    def findings(self) -> Findings:
        if self._runs:
            self._close()
            self._ear.close()
        self.seen.sightings += [
            *((EXIT_CODE, named(code), count, "", {}) for code, count in sorted(self._codes.items())),
            *((ENDED, why, count, "", {}) for why, count in self._ends.items() if count),
            *((self._topic, kind, count, example, {}) for kind, count, example in self._messages),
        ]
        return super().findings()


class CommandSource(ProgramSource):
    """Starts a command for each operation."""

    _starter: Starter
    _opened: Opened

    def _open(self, variables: dict[str, str]) -> None:
        spec = self.case.spec
        self._starter = Starter(variables, spec.stdin, self._ear.theirs, spec.timeout_s)
        database = self._address if spec.command else ""
        self._opened = Opened(database, spec.data.database, lambda: self._starter.pid, self._flags)
        when_orphaned(self._starter.end)

    def prepared(self, picks: Sequence[int]) -> list[list[str]]:
        return [filled(self._words, self._given(self._next_number())) for _ in picks]

    def _run(self, given: list[str]) -> None:
        ended = self._starter.run(given)
        self._ear.ended()
        self._count(ended)
        if not ended.too_late and ended.code == 0:
            self._flags[WORKED] = 1
            return
        self._fail()

    def _close(self) -> None:
        self._starter.close()
        self.seen.sightings = self._opened.sightings()


class LineSource(ProgramSource):
    """Starts a program once, and lets it read a line for each operation."""

    _dialogue: Dialogue
    _opened: Opened
    _topic, _what = ANSWER, "lines"

    def _open(self, variables: dict[str, str]) -> None:
        spec = self.case.spec
        words = filled(self._words, self._given(0))
        self._dialogue = Dialogue(variables, words, self._ear.theirs, spec.timeout_s)
        self._opened = Opened(self._address, spec.data.database, lambda: self._dialogue.pid, self._flags)
        when_orphaned(self._dialogue.end)
        # Before the load: how long a program takes to start is in no latency, and what is wrong is told.
        answer = self._dialogue.ask(self._line())
        if isinstance(answer, Ended) or not _is_answer(answer):
            self._ear.ended()
            self._ear.caught_up()
            said = list(self._messages.examples.values())
            if self._dialogue.pid is not None:
                self._dialogue.leave()
            raise EnvironmentFailure(_unanswered(words[0], answer, spec.timeout_s, said))

    def _line(self) -> bytes:
        return b"%d\n" % self._next_number()

    def prepared(self, picks: Sequence[int]) -> list[bytes]:
        return [self._line() for _ in picks]

    def _run(self, given: bytes) -> None:
        answer = self._dialogue.ask(given)
        if answer == "ok" or (isinstance(answer, str) and answer.startswith("ok ") and "\n" not in answer):
            self._flags[WORKED] = 1
            return
        if isinstance(answer, Ended):
            self._ear.ended()  # what it wrote last says why
            self._count(answer)
        elif _is_answer(answer):
            self._keep(line_of(answer.removeprefix("error").lstrip(" :")) or "error")
        else:
            # It may be the first of several lines, of which the others would be taken for answers.
            self._dialogue.leave()
            self._keep(f"unexpected answer: {answer!r:.100}")
        try:
            self._fail()
        except EnvironmentFailure:
            if self._dialogue.pid is not None:
                self._dialogue.leave()  # this worker ends, and nobody else knows the program
            raise

    def _close(self) -> None:
        if self._dialogue.pid is not None and self._dialogue.leave().stayed:
            self._ends[STAYED] += 1
        looks = self._opened.sightings()
        if self.case.spec.data.database:  # they tell whether the copy was used
            self.seen.sightings = looks
        self.seen.reconnected = True  # the program has closed the database, and may have removed the WAL
        self._dialogue.close()


def _is_answer(text: str) -> bool:
    return "\n" not in text and text.split(" ")[0].rstrip(":") in ("ok", "error")


def _unanswered(program: str, answer: str | Ended, timeout_s: float, said: Sequence[str]) -> str:
    """Say why a program can't be used."""
    expects = 'With --lines it must answer each line of its input with one line, "ok" or "error ..."'
    words = f" Its standard error: {said[0].removesuffix('.')[:80]}." if said else ""
    if isinstance(answer, str):
        how = f"answered {answer!r:.100}"
    elif answer.too_late:
        how = f"did not answer within {timeout_s:g} s. It may not flush its output"
    elif answer.stayed:
        how = "closed its output, or answered without a line break"
    else:
        how = f"ended before it answered, with exit code {named(answer.code)}"
    return f"{program!r:.200} {how}.{words} {expects}"


def _does_nothing() -> tuple[str, ...]:
    """Return a command that does nothing: what it takes is what starting a process costs."""
    if sys.platform == "win32":
        return os.environ.get("COMSPEC", "cmd.exe"), "/d", "/c", "exit 0"
    return (shutil.which("true") or "/bin/true",)


def named(code: int) -> str:
    """Return an exit code; where a signal ended the command, its name."""
    if code >= 0 or sys.platform == "win32":
        return str(code)
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
