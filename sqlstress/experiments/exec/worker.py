"""Worker's part of the experiment `exec`.

An operation is a command, from its start to its exit. With --lines, an operation is a line that the command's
process answers.
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

from sqlstress.analysis.causes import code_in
from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.exec import (
    ANSWER,
    ENDED,
    EXIT_CODE,
    LEFT_BEHIND,
    MOMENTS,
    STAYED,
    STDERR,
    TOO_LATE,
)
from sqlstress.experiments.exec.programs import CommandExit, CommandStarter, Dialogue, OutputReader
from sqlstress.experiments.exec.refusal import lockless_place
from sqlstress.experiments.exec.sampling import WORKED, OpenFileSampler
from sqlstress.experiments.exec.template import Given, fill, parse
from sqlstress.recording.failures import statement_kind
from sqlstress.recording.messages import OTHER_KINDS, error_line, group_key, source_line
from sqlstress.sqlite_codes import CANTOPEN
from sqlstress.system.child import on_parent_end
from sqlstress.user_work.loading import environment
from sqlstress.user_work.source import KindCounter, UserSource

if TYPE_CHECKING:
    from sqlstress.engine.protocols import Chunk, Findings, Stamps
    from sqlstress.report.case import Case
    from sqlstress.targets.dry import DryPlace
    from sqlstress.targets.place import SqlPlace
    from sqlstress.targets.views import ConnectionInfo

TRIAL = "SQLSTRESS_TRIAL"
"""Environment variable of the commands that identifies their trial."""
FAILED_ALIKE = 10
"""Number of operations after which a worker gives up, if all failed in the same way."""
_QUOTED = re.compile(r"[\"'`]\s*([A-Za-z].*)")
"""Pattern of quoted text in a line of source code, which may be SQL."""
_BUSY = re.compile("locked|busy", re.IGNORECASE)


class CommandFailed(Exception):
    """Failure of an operation, including a timeout."""


def open_source(*arguments: Any) -> ProgramSource:
    """Return the object that runs a worker's operations: lines for a program (--lines), else commands."""
    case: Case = arguments[0]
    return LineSource(*arguments) if case.spec.lines else CommandSource(*arguments)


class ProgramSource(UserSource):
    """Base class of sources of a worker's operations, which the user's programs do.

    A source runs the operations, and counts exits and messages of the programs.
    """

    _topic, _noun = STDERR, "commands"
    _output_reader: OutputReader

    def __init__(
        self, case: Case, place: SqlPlace | DryPlace, worker: int, salt: int, shared: tuple[Any, ...]
    ) -> None:
        super().__init__(case, worker, salt, {"command": 1})
        self._words = parse(case.spec.command or _empty_command())
        self._number = worker - case.concurrency
        self._address = ""
        self._codes, self._messages = Counter[int](), KindCounter((OTHER_KINDS, ""))
        self._ends = Counter[str]()
        self._failed = 0
        *_, self._flags, trial = shared
        # With a target that stores nothing, sqlstress measures only its own cost, so no command runs.
        self._runs = place.stores
        self.calls: Sequence[Callable[[Any], Any]] = (self._run if self._runs else lambda _: None,)
        if place.stores:
            self._begin(place.directions(), trial)

    def _begin(self, directions: ConnectionInfo, trial: str) -> None:
        if sys.platform != "win32":
            # Commands must handle SIGINT as in a shell, but they inherit an ignored or blocked signal from
            # the worker. They do not inherit a handler. So set a handler that does nothing, and unblock the
            # signal.
            signal.signal(signal.SIGINT, lambda *_: None)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        self._address = directions.address
        self._output_reader = OutputReader(lambda text: self._add_output(directions.hidden(text)))
        self._open({**environment(directions, os.environ), TRIAL: trial})

    def _open(self, variables: dict[str, str]) -> None:
        raise NotImplementedError

    def _close(self) -> None:
        raise NotImplementedError

    def _run(self, item: Any) -> None:
        """Do an operation. Raises CommandFailed, or EnvironmentFailure if the worker gives up."""
        raise NotImplementedError

    def _add_output(self, text: str) -> None:
        if line := error_line(text):
            source = source_line(text, line)
            self._count_message(line, source if statement_in(source) else "")

    def _count_message(self, line: str, source: str = "") -> None:
        self._messages.add((group_key(line), source), line)

    def _next_number(self) -> int:
        # Each of N workers uses every Nth number, so that workers need not share a counter.
        self._number += self.case.concurrency
        return self._number

    def _values(self, number: int) -> Given:
        return Given(number, self.worker, self._address, self.case.spec.inner, self.random)

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        """Make the numbers ({n}) of operations that did not run available for later operations.

        All operations in `chunk` were prepared and got a number, but only the first `done` ran.
        """
        self._number -= (len(chunk.kinds) - done) * self.case.concurrency

    def _count(self, ended: CommandExit) -> None:
        reason = TOO_LATE if ended.too_late else STAYED if ended.stayed else ""
        if reason:
            self._ends[reason] += 1
        else:
            self._codes[ended.code] += 1
        self._ends[LEFT_BEHIND] += ended.left_behind

    def _fail(self) -> None:
        """Raise CommandFailed, or EnvironmentFailure if the first FAILED_ALIKE failed in the same way.

        Raise CommandFailed for lock errors in any case, because a later operation may succeed.
        """
        self._failed += 1
        may_give_up = self._failed == FAILED_ALIKE and self.case.max_failed < 1
        if not may_give_up or self._flags[WORKED] or self._ends[TOO_LATE] or len(self._codes) > 1:
            raise CommandFailed
        self._output_reader.await_texts()
        examples = list(self._messages.examples.values())
        if len(examples) > 1 or any(map(_BUSY.search, examples)):
            raise CommandFailed
        (code,) = self._codes or (0,)
        name = exit_name(code)
        ending = f", with exit code {code}" if code > 0 or name == str(code) else f", by {name}"
        example_text = f": {examples[0].removesuffix('.')}" if examples else ""
        is_unopened = bool(examples) and code_in(examples[0]) == CANTOPEN
        place = lockless_place(self.case.spec.command) if is_unopened else ""
        hint = f". {place} takes no locks, and SQLite opens no WAL database without locks" if place else ""
        raise EnvironmentFailure(
            f"the first {FAILED_ALIKE} {self._noun} failed in the same way{ending if self._codes else ''}"
            f"{example_text}{hint}. Fix the command, or use --max-failed 100% if it is meant to fail"
        )

    def was_busy(self, error: Exception) -> bool:
        return isinstance(error, CommandFailed)

    def findings(self) -> Findings:
        if self._runs:
            self._close()
            self._output_reader.close()
        self.seen.sightings += [
            *((EXIT_CODE, exit_name(code), count, "", {}) for code, count in sorted(self._codes.items())),
            *((ENDED, reason, count, "", {}) for reason, count in self._ends.items() if count),
            *(
                (self._topic, kind, count, example, _traits(source))
                for (kind, source), count, example in self._messages
            ),
        ]
        return super().findings()


class CommandSource(ProgramSource):
    """Source of operations that each start a command."""

    _starter: CommandStarter
    _sampler: OpenFileSampler

    def _open(self, variables: dict[str, str]) -> None:
        spec = self.case.spec
        self._starter = CommandStarter(variables, spec.stdin, self._output_reader.theirs, spec.timeout_s)
        database = self._address if spec.command else ""
        self._sampler = OpenFileSampler(
            database, spec.data.database, lambda: self._starter.pid, self._flags, self.worker
        )
        on_parent_end(self._starter.end)

    def prepare(self, picks: Sequence[int]) -> list[list[str]]:
        return [fill(self._words, self._values(self._next_number())) for _ in picks]

    def _run(self, words: list[str]) -> None:
        ended = self._starter.run(words)
        self._output_reader.mark_end()
        self._count(ended)
        if not ended.too_late and ended.code == 0:
            self._flags[WORKED] = 1
            return
        self._fail()

    def _close(self) -> None:
        self._starter.close()
        self.seen.sightings = self._sampler.sightings()


class LineSource(ProgramSource):
    """Source of operations that are lines for a program, which is started once per worker."""

    _dialogue: Dialogue
    _sampler: OpenFileSampler
    _topic, _noun = ANSWER, "lines"

    def _open(self, variables: dict[str, str]) -> None:
        spec = self.case.spec
        words = fill(self._words, self._values(0))
        self._dialogue = Dialogue(variables, words, self._output_reader.theirs, spec.timeout_s)
        self._sampler = OpenFileSampler(
            self._address, spec.data.database, lambda: self._dialogue.pid, self._flags, self.worker
        )
        on_parent_end(self._dialogue.end)
        # The first line is written before the load, so that no latency includes the program's start, and
        # errors are reported at once.
        answer = self._dialogue.ask(self._line())
        if isinstance(answer, CommandExit) or not _is_answer(answer):
            self._output_reader.mark_end()
            self._output_reader.await_texts()
            messages = list(self._messages.examples.values())
            if self._dialogue.pid is not None:
                self._dialogue.leave()
            raise EnvironmentFailure(_first_answer_error(words[0], answer, spec.timeout_s, messages))

    def _line(self) -> bytes:
        return b"%d\n" % self._next_number()

    def prepare(self, picks: Sequence[int]) -> list[bytes]:
        return [self._line() for _ in picks]

    def _run(self, line: bytes) -> None:
        answer = self._dialogue.ask(line)
        if answer == "ok" or (isinstance(answer, str) and answer.startswith("ok ") and "\n" not in answer):
            self._flags[WORKED] = 1
            return
        if isinstance(answer, CommandExit):
            self._output_reader.mark_end()  # The reason is in the program's last output.
            self._count(answer)
        elif _is_answer(answer):
            self._count_message(error_line(answer.removeprefix("error").lstrip(" :")) or "error")
        else:
            # Further lines may follow, which would count as answers to later operations.
            self._dialogue.leave()
            self._count_message(f"unexpected answer: {answer!r:.100}")
        try:
            self._fail()
        except EnvironmentFailure:
            if self._dialogue.pid is not None:
                self._dialogue.leave()  # This worker ends, and only it can end the program.
            raise

    def _close(self) -> None:
        if self._dialogue.pid is not None and self._dialogue.leave().stayed:
            self._ends[STAYED] += 1
        samples = self._sampler.sightings()
        # The samples of MOMENTS show whether commands use the copy of --database. Without a copy, omit them.
        has_copy = self.case.spec.data.database
        self.seen.sightings = [sample for sample in samples if has_copy or sample[0] != MOMENTS]
        self.seen.reconnected = True  # The program has closed the database, so the WAL may have been removed.
        self._dialogue.close()


def statement_in(source: str) -> str:
    """Return the kind of SQL statement in a line of source code, such as "commit"; empty if unknown."""
    if "journal_mode" in source.lower():
        return "journal_mode"
    if quoted := _QUOTED.search(source):
        return statement_kind(quoted[1])
    return "commit" if ".commit(" in source else ""


def _traits(source: str) -> dict[str, str]:
    return {"source": source, "statement": statement_in(source)} if source else {}


def _is_answer(text: str) -> bool:
    return "\n" not in text and text.split(" ")[0].rstrip(":") in ("ok", "error")


def _first_answer_error(
    program: str, answer: str | CommandExit, timeout_s: float, messages: Sequence[str]
) -> str:
    expects = 'With --lines it must answer each line of its input with one line, "ok" or "error ..."'
    error_text = f" Its standard error: {messages[0].removesuffix('.')[:80]}." if messages else ""
    if isinstance(answer, str):
        problem = f"answered {answer!r:.100}"
    elif answer.too_late:
        problem = f"did not answer within {timeout_s:g} s. It may not flush its output"
    elif answer.stayed:
        problem = "closed its output, or answered without a line break"
    else:
        problem = f"ended before it answered, with exit code {exit_name(answer.code)}"
    return f"{program!r:.200} {problem}.{error_text} {expects}"


def _empty_command() -> tuple[str, ...]:
    if sys.platform == "win32":
        return os.environ.get("COMSPEC", "cmd.exe"), "/d", "/c", "exit 0"
    return (shutil.which("true") or "/bin/true",)


def exit_name(code: int) -> str:
    """Return an exit code as text, or the name of a signal, such as "SIGKILL"."""
    if code >= 0 or sys.platform == "win32":
        return str(code)
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
