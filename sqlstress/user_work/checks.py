"""The user's checks: a query must return no rows, a function must not raise; neither takes for ever.

They run in one process: before the load, beside the workers while they work, and after it.
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
from sqlstress.errors import UsageError, message_of, plainly
from sqlstress.targets import open_place
from sqlstress.targets.views import BUSY, INTERRUPTED
from sqlstress.user_work import loading, notes
from sqlstress.user_work.loading import Unloadable, only_begins, prepare_process
from sqlstress.user_work.own_files import OtherFile, own_files

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.place import SqlPlace
    from sqlstress.targets.views import Reader, Row
    from sqlstress.user_work.options import Invariant

T = TypeVar("T")

EXAMPLES = 3
MOST_ROWS = 10_000
"""So many rows are counted of a check that fails."""
_WIDEST = 160


class Broken(NamedTuple):
    """A check that failed."""

    name: str
    rows: int
    """How many rows it returned; 1 of a function."""
    examples: tuple[str, ...]
    """The first of them, in words."""


class Unchecked(UsageError):
    """A check that says nothing: it can't be run, or takes too long."""


class Checks:
    """The checks of a case."""

    _reader: Reader

    def __init__(self, invariants: Sequence[Invariant], timeout_s: float) -> None:
        self._invariants, self._timeout_s = invariants, timeout_s
        self._functions = {one.where: _function_of(one) for one in invariants if not one.sql}

    def broken(self, reader: Reader) -> Iterator[Broken]:
        """Yield the checks that fail, all seen in one snapshot of a connection. Raises Unchecked.

        Those that wait until all processes have ended are not among them.
        """
        self._reader = reader
        self._reader.begin()
        try:
            yield from self._failing(one for one in self._invariants if not one.at_end)
        finally:
            self._reader.end()

    def broken_at_end(self, reader: Reader, given: Mapping[str, Any]) -> Iterator[Broken]:
        """Yield those of the others that fail. They may change the data. Raises Unchecked.

        `given` are what a function gets by the names of its parameters.
        """
        self._reader = reader
        yield from self._failing((one for one in self._invariants if one.at_end), given)

    def _failing(self, some: Iterable[Invariant], given: Mapping[str, Any] | None = None) -> Iterator[Broken]:
        for one in some:
            with self._guarded(one):
                broken = self._query(one) if one.sql else self._call(one, given or {})
            if broken:
                yield broken

    def _query(self, one: Invariant) -> Broken | None:
        rows = self._reader.first(one.sql, MOST_ROWS)
        return Broken(one.name, len(rows), tuple(map(_shown, rows[:EXAMPLES]))) if rows else None

    def _call(self, one: Invariant, given: Mapping[str, Any]) -> Broken | None:
        def query(sql: str, params: Sequence[Any] = ()) -> list[Row]:
            return self._reader.rows(sql, params)

        function, begun = self._functions[one.where], time.monotonic()
        named = at_end(function)
        needs_query = not named or len(signature(function).parameters) > len(named)
        try:
            function(*[query] * needs_query, **{name: given[name] for name in named})
        except SystemExit as error:
            raise Unchecked(
                f"the check {one.name} ({one.where}) ends its process. Raise AssertionError instead."
            ) from error
        except OtherFile as error:
            raise Unchecked(f"the check {one.name} ({one.where}) failed to run: {error}.") from error
        except Exception as error:
            if self._reader.answer(error):
                raise
            text = message_of(error) if isinstance(error, AssertionError) else plainly(error)
            return Broken(one.name, 1, (text[:_WIDEST] or "it does not hold",))
        # Its SQL is cut off; what Python does in between can't be, and is told afterwards.
        if time.monotonic() - begun > self._timeout_s:
            raise self._too_slow(one)
        return None

    def _too_slow(self, one: Invariant) -> Unchecked:
        return Unchecked(
            f"the check {one.name} ({one.where}) took longer than {self._timeout_s:g} s, including waits "
            "for locks. Make it faster (an index may help), or raise --check-timeout."
        )

    @contextmanager
    def _guarded(self, one: Invariant) -> Iterator[None]:
        """Cut a check off that takes too long, and say of an error which check met it. BUSY is passed on."""
        timer = threading.Timer(self._timeout_s, self._reader.interrupt)
        timer.daemon = True
        timer.start()
        try:
            yield
        except Unchecked:
            raise
        except Exception as error:
            answer = self._reader.answer(error)
            if answer and answer.kind == BUSY:
                raise
            if answer and answer.kind == INTERRUPTED:
                raise self._too_slow(one) from error
            text = answer.text if answer else message_of(error)
            raise Unchecked(f"the check {one.name} ({one.where}) failed to run: {text}.") from error
        finally:
            timer.cancel()


NOTES, DATABASE = "notes", "database"
"""Parameters of functions that run when all processes have ended."""


def at_end(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return which of these parameters a function has."""
    try:
        names = signature(function).parameters
    except (TypeError, ValueError):  # one of C
        return ()
    return tuple(name for name in (NOTES, DATABASE) if name in names)


def _function_of(one: Invariant) -> Callable[..., object]:
    """Return a function by its file and name, "checks.py:money". Raises Unchecked."""
    where = one.where
    file, _, name = where.rpartition(":")
    try:
        function: Any = getattr(loading.load(file), name)
    except (Unloadable, AttributeError) as error:
        raise Unchecked(f"cannot load the check {where}: {message_of(error).removesuffix('.')}.") from error
    if not callable(function) or only_begins(function):
        raise Unchecked(f"the check {where} checks nothing: it is async, or not a function.")
    if at_end(function) and not one.at_end:
        raise Unchecked(
            f"the check {where} asks for notes or the database. Mark it with @check in the file of sqlstress "
            "app."
        )
    return function  # type: ignore[no-any-return]


def _shown(row: Row) -> str:
    text = f"({', '.join(map(repr, row))})"
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 2]}.."


# The process that runs them: it does nothing else, and has loaded the user's file once for all looks.


MOST_UNOPENED = 5
"""So often in a row a round may get no connection: whoever closes the last one has the file to itself."""

_checkers: list[Checker] = []
"""Of this process, as soon as one was asked for."""


def load(case: Case, where: Path) -> None:
    """Import the files of checks. Raises Unchecked."""
    if not _checkers:
        place: SqlPlace = open_place(case, where)  # type: ignore[assignment]
        prepare_process(place.directions(), str(case.seed))
        if not getattr(case.spec, "allow_other_files", True):
            own_files(place.directions(), case.spec.data.database, allow_others=False)
        notes.remember_in(where)
        _checkers.append(Checker(case, place))


def looked(look: Callable[[Checker], T], case: Case, where: Path) -> T:
    """Return what the checker of this process sees by one of its methods. Raises Unchecked."""
    load(case, where)
    os.chdir(_checkers[0].folder)  # a check may have gone elsewhere, and our paths are relative
    return look(_checkers[0])


class Round(NamedTuple):
    """What a round beside the load came to."""

    took_s: float
    broken: list[Broken] | None
    """None: somebody was in the way, and it says nothing."""


class Checker:
    """Looks at the data of a trial, again and again.

    Each look has a connection of its own: the last one that is closed checkpoints the WAL and removes it, and
    where one of ours stayed open it would never be one of the load's.
    """

    def __init__(self, case: Case, place: SqlPlace) -> None:
        self._case, self._place, data = case, place, case.spec.data
        self.folder = Path.cwd()
        self._checks = Checks(data.checks, data.check_timeout_s)
        self._unopened = 0

    def broken(self) -> list[Broken]:
        """Return the checks that fail, but those that wait until all processes have ended."""
        with self._place.reading(lambda: None) as reader:
            return list(self._checks.broken(reader))

    def broken_at_end(self) -> list[Broken]:
        """Return all checks that fail."""
        with self._place.reading(lambda: None) as reader:
            found = list(self._checks.broken(reader))
            noted = notes.read(self._place.where, self._case.concurrency)
            given = {NOTES: noted, DATABASE: self._place.directions().address}
            return [*found, *self._checks.broken_at_end(reader, given)]

    def round(self, starts_ns: int) -> Round:
        """Return what `broken` does, in a connection like those of the load, whose workers start then."""
        wait_until(starts_ns)
        begun = time.monotonic()
        try:
            reader = self._place.reader()
        except Exception:
            self._unopened += 1
            if self._unopened >= MOST_UNOPENED:
                raise
            return Round(time.monotonic() - begun, None)
        self._unopened = 0
        found = None
        try:
            found = list(self._checks.broken(reader))
        except Unchecked:
            raise
        except Exception as error:
            answer = reader.answer(error)
            if not answer or answer.kind != BUSY:
                raise  # else the next round finds nobody in the way
        finally:
            reader.close()
        return Round(time.monotonic() - begun, found)
