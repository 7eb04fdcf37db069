"""Runner of the user's checks on the data: a query must return no rows, a function must not raise.

The checks run in a process of their own. A final check (`at_end`) is a function that takes the notes, which
the user's transactions recorded by `note()`, or the path of the database. Final checks run only once, after
all worker processes have ended. The other checks run before, during and after the load. A round runs each of
the other checks once. `Checks` runs checks through a given connection; `Checker` opens and closes the
connection of each round.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sqlstress.engine.worker import wait_until
from sqlstress.errors import UsageError, error_message, plainly
from sqlstress.targets import open_place
from sqlstress.targets.views import BUSY, INTERRUPTED
from sqlstress.user_work import loading, notes
from sqlstress.user_work.loading import ImportFailed, is_lazy, prepare_process
from sqlstress.user_work.own_files import OtherFileError, guard_files

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.place import SqlPlace
    from sqlstress.targets.views import Reader, Row
    from sqlstress.user_work.options import Invariant

T = TypeVar("T")

EXAMPLES = 3
MAX_ROWS = 10_000
"""Maximum number of rows that are read from the query of a check."""
_MAX_TEXT_CHARS = 160


class CheckFailure(NamedTuple):
    """Result of a failed check: its query returned rows, or its function raised or returned False."""

    name: str
    rows: int
    """Number of rows that the query returned, at most MAX_ROWS; 1 for a function."""
    examples: tuple[str, ...]
    """First rows of the query, or the error of the function, as text."""


class CheckNotRun(UsageError):
    """A check has no result: it cannot run, or exceeds the time limit."""


class Checks:
    """The user's checks, run through a given connection. Final checks run only after the load.

    Each check has a time limit of `timeout_s` seconds.
    """

    _reader: Reader

    def __init__(self, invariants: Sequence[Invariant], timeout_s: float) -> None:
        self._invariants, self._timeout_s = invariants, timeout_s
        self._functions = {
            invariant.where: _load_function(invariant) for invariant in invariants if not invariant.sql
        }

    def broken(self, reader: Reader) -> Iterator[CheckFailure]:
        """Run all but the final checks, and yield those that fail. Raises CheckNotRun.

        The checks run in one read transaction, so that all see the same data.
        """
        self._reader = reader
        self._reader.begin()
        try:
            yield from self._run(invariant for invariant in self._invariants if not invariant.at_end)
        finally:
            self._reader.end()

    def broken_at_end(self, reader: Reader, given: Mapping[str, Any]) -> Iterator[CheckFailure]:
        """Run the final checks, and yield those that fail. Raises CheckNotRun.

        Final checks run outside of a read transaction, because they may change the data. `given` has their
        arguments "notes" and "database".
        """
        self._reader = reader
        yield from self._run((invariant for invariant in self._invariants if invariant.at_end), given)

    def _run(
        self, invariants: Iterable[Invariant], arguments: Mapping[str, Any] | None = None
    ) -> Iterator[CheckFailure]:
        for invariant in invariants:
            with self._time_limit(invariant):
                broken = self._query(invariant) if invariant.sql else self._call(invariant, arguments or {})
            if broken:
                yield broken

    def _query(self, invariant: Invariant) -> CheckFailure | None:
        rows = self._reader.first(invariant.sql, MAX_ROWS)
        return (
            CheckFailure(invariant.name, len(rows), tuple(map(_row_text, rows[:EXAMPLES]))) if rows else None
        )

    def _call(self, invariant: Invariant, arguments: Mapping[str, Any]) -> CheckFailure | None:
        def query(sql: str, params: Sequence[Any] = ()) -> list[Row]:
            return self._reader.rows(sql, params)

        function, started = self._functions[invariant.where], time.monotonic()
        names = end_parameters(function)
        try:
            result = function(*[query] * _takes_query(function), **{name: arguments[name] for name in names})
        except SystemExit as error:
            raise _not_run(invariant, "ends its process. Raise AssertionError instead") from error
        except OtherFileError as error:
            raise _not_run(invariant, f"failed to run: {error}") from error
        except Exception as error:
            if self._reader.answer(error):
                raise
            if isinstance(error, AttributeError) and error.obj is query:
                raise _not_run(invariant, "uses its parameter as a connection. " + _QUERY_USE) from error
            text = error_message(error) if isinstance(error, AssertionError) else plainly(error)
            return CheckFailure(invariant.name, 1, (text[:_MAX_TEXT_CHARS] or "it does not hold",))
        # The timer interrupts only SQL. A function that spends its time in Python runs to its end, and is
        # then reported as too slow.
        if time.monotonic() - started > self._timeout_s:
            raise self._too_slow(invariant)
        if result is None or isinstance(result, bool):
            return None if result is not False else CheckFailure(invariant.name, 1, ("it returned False",))
        raise _not_run(
            invariant, f"returned a {type(result).__name__}. Raise AssertionError, or return True or False"
        )

    def _too_slow(self, invariant: Invariant) -> CheckNotRun:
        return _not_run(
            invariant,
            f"took longer than {self._timeout_s:g} s, including waits for locks. "
            "Make it faster (an index may help), or raise --check-timeout",
        )

    @contextmanager
    def _time_limit(self, invariant: Invariant) -> Iterator[None]:
        """Interrupt the check in the `with` block after the time limit. Raises CheckNotRun.

        An exception that the check's own function raises is a failed check, and does not reach this block.
        Other exceptions, such as errors in the SQL, become CheckNotRun. Only the error of a locked database
        is raised unchanged, because a later round may succeed.
        """
        timer = threading.Timer(self._timeout_s, self._reader.interrupt)
        timer.daemon = True
        timer.start()
        try:
            yield
        except CheckNotRun:
            raise
        except Exception as error:
            answer = self._reader.answer(error)
            if answer and answer.kind == BUSY:
                raise
            if answer and answer.kind == INTERRUPTED:
                raise self._too_slow(invariant) from error
            text = answer.text if answer else error_message(error)
            raise _not_run(invariant, f"failed to run: {text}") from error
        finally:
            timer.cancel()


def _not_run(invariant: Invariant, reason: str) -> CheckNotRun:
    return CheckNotRun(f"the check {invariant.name} ({invariant.where}) {reason}.")


NOTES, DATABASE = "notes", "database"
"""Names of the parameters that make a check final: such a check runs only after the load."""
_QUERY_USE = 'Its first parameter is a function: query("SELECT ...") returns the rows'


def end_parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return those of the names "notes" and "database" that are parameters of a function."""
    try:
        names = signature(function).parameters
    except (TypeError, ValueError):  # A function of a C extension may have no signature.
        return ()
    return tuple(name for name in (NOTES, DATABASE) if name in names)


def _load_function(invariant: Invariant) -> Callable[..., object]:
    where = invariant.where
    file, _, name = where.rpartition(":")
    try:
        function: Any = getattr(loading.load(file), name)
    except (ImportFailed, AttributeError) as error:
        raise CheckNotRun(
            f"cannot load the check {where}: {error_message(error).removesuffix('.')}."
        ) from error
    if not callable(function) or is_lazy(function):
        raise CheckNotRun(f"the check {where} checks nothing: it is async, or not a function.")
    if text := _unknown_parameters(function):
        raise CheckNotRun(f"the check {where} {text}")
    if end_parameters(function) and not invariant.at_end:
        raise CheckNotRun(
            f"the check {where} asks for notes or the database. Mark it with @check in the file of sqlstress "
            "app."
        )
    return function  # type: ignore[no-any-return]


def _unknown_parameters(function: Callable[..., Any]) -> str:
    """Return an error text if a function cannot be called with the arguments of a check; else "".

    A check may have the parameters `notes` and `database`, and one with any other name, which gets `query`.
    """
    names = end_parameters(function)
    try:
        signature(function).bind(*(["query"] if _takes_query(function) else []), **dict.fromkeys(names))
    except TypeError as error:
        return f'cannot be called: {error}. {_QUERY_USE}. Notes are a parameter `notes`: notes.of("kind").'
    except ValueError:  # A function of a C extension may have no signature.
        pass
    return ""


def _takes_query(function: Callable[..., Any]) -> bool:
    names = end_parameters(function)
    return not names or len(signature(function).parameters) > len(names)


def _row_text(row: Row) -> str:
    text = f"({', '.join(map(repr, row))})"
    return text if len(text) <= _MAX_TEXT_CHARS else f"{text[: _MAX_TEXT_CHARS - 2]}.."


# Functions that run in the process of the checks.


MAX_FAILED_OPENS = 5
"""Number of consecutive rounds that fail to connect, after which the checks stop with an error.

A single failure is normal: the last connection of the load locks the file exclusively while it closes.
"""

_checkers: list[Checker] = []
"""Checker of this process: a list of one item; empty before `load`."""


def load(case: Case, where: Path) -> None:
    """Import the user's checks for the data folder `where`. Raises CheckNotRun.

    Later calls in this process do nothing: it serves a single folder.
    """
    if not _checkers:
        place: SqlPlace = open_place(case, where)  # type: ignore[assignment]
        prepare_process(place.directions(), str(case.seed))
        if not getattr(case.spec, "allow_other_files", True):
            guard_files(place.directions(), case.spec.data.database, allow_others=False)
        notes.remember_in(where)
        _checkers.append(Checker(case, place))


def call_checker(look: Callable[[Checker], T], case: Case, where: Path) -> T:
    """Return the result of `look`, called with this process's Checker. Raises CheckNotRun.

    If the process has no Checker yet, create one for `case` and the data folder `where`.
    """
    load(case, where)
    os.chdir(_checkers[0].folder)  # A check may have changed the working folder, and our paths are relative.
    return look(_checkers[0])


class CheckRound(NamedTuple):
    """Result of a round of checks during the load, in which each check runs once."""

    took_s: float
    """Duration of the round, in seconds."""
    broken: list[CheckFailure] | None
    """Failed checks; None if the round could not connect, or found the database locked.

    A round with None is not counted.
    """


class Checker:
    """Runner of the user's checks in rounds. Each round runs each check once, on a new connection.

    The last connection to close removes the WAL. If a connection of the checks stayed open, no worker would
    ever be the last and remove the WAL, and this part of SQLite would not be tested.
    """

    def __init__(self, case: Case, place: SqlPlace) -> None:
        self._case, self._place, data = case, place, case.spec.data
        self.folder = Path.cwd()
        self._checks = Checks(data.checks, data.check_timeout_s)
        self._unopened = 0

    def broken(self) -> list[CheckFailure]:
        """Run all but the final checks, and return those that fail."""
        with self._place.reading(lambda: None) as reader:
            return list(self._checks.broken(reader))

    def broken_at_end(self) -> list[CheckFailure]:
        """Run all checks after all worker processes have ended, and return those that fail."""
        with self._place.reading(lambda: None) as reader:
            broken = list(self._checks.broken(reader))
            noted = notes.read(self._place.where, self._case.concurrency)
            given = {NOTES: noted, DATABASE: self._place.directions().address}
            return [*broken, *self._checks.broken_at_end(reader, given)]

    def round(self, starts_ns: int) -> CheckRound:
        """Run a round of checks, after a wait for the workers' start at `starts_ns` (`perf_counter_ns`)."""
        wait_until(starts_ns)
        started = time.monotonic()
        try:
            reader = self._place.reader()
        except Exception:
            self._unopened += 1
            if self._unopened >= MAX_FAILED_OPENS:
                raise
            return CheckRound(time.monotonic() - started, None)
        self._unopened = 0
        broken = None
        try:
            broken = list(self._checks.broken(reader))
        except CheckNotRun:
            raise
        except Exception as error:
            answer = reader.answer(error)
            if not answer or answer.kind != BUSY:
                raise  # If the database was locked, the next round may succeed.
        finally:
            reader.close()
        return CheckRound(time.monotonic() - started, broken)
