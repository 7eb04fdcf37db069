"""The user's checks: a query must return no rows, a function must not raise; neither takes for ever.

They run before the load and after it, and in a process beside the workers while they work.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.errors import UsageError, plainly, said
from sqlstress.system.sharing import shared_array
from sqlstress.targets.views import BUSY, INTERRUPTED
from sqlstress.user_work import notes
from sqlstress.user_work.loading import Unloadable, load, only_begins, prepare_process

if TYPE_CHECKING:
    from sqlstress.engine.loop import Window
    from sqlstress.report.case import Case
    from sqlstress.statistics.series import Series
    from sqlstress.targets.place import SqlPlace
    from sqlstress.targets.views import Reader, Row
    from sqlstress.user_work.options import Invariant

Query = Callable[..., "list[Row]"]
"""What a function of the user's is given: SQL, and parameters if it has any → rows."""

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
        except Exception as error:
            if self._reader.answer(error):
                raise
            text = said(error) if isinstance(error, AssertionError) else plainly(error)
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
            text = answer.text if answer else said(error)
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
        function: Any = getattr(load(file), name)
    except (Unloadable, AttributeError) as error:
        raise Unchecked(f"cannot load the check {where}: {said(error).removesuffix('.')}.") from error
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


# A board in shared memory, on which one process writes what another reads when it has ended.


_WORDS = 8192
_ROOM = 8 * (_WORDS - 1)


def shared_words() -> Any:
    """Return the shared memory of a board, with nothing on it."""
    return shared_array("q", _WORDS)


class Board:
    """What stands there; one process writes."""

    def __init__(self, words: Any) -> None:
        self._length = memoryview(words).cast("B").cast("q")[:1]
        self._room = memoryview(words).cast("B")[8:]

    def write(self, content: Any) -> bool:
        """Write something in the place of what stands there; return whether there is room for it."""
        data = pickle.dumps(content)
        if len(data) > _ROOM:
            return False
        # Whoever dies in between leaves nothing that could be taken for the whole.
        self._length[0] = 0
        self._room[: len(data)] = data
        self._length[0] = len(data)
        return True

    def read(self) -> Any:
        """Return what stands there; None where nothing does."""
        length = self._length[0]
        return pickle.loads(bytes(self._room[:length])) if length else None


# The process beside the workers.


PAUSE_S = 0.1
"""The shortest pause between two rounds. It is as long as the round took, if that was longer: the checker
takes half a processor at most."""
_TICK_S = 0.02
_MOST_UNOPENED = 5
"""So often in a row a connection may not be had: whoever closes the last one has the file to itself."""
_BRIEF = 40
"""Characters."""


class Checker:
    """Runs all checks until the workers are done, each round in one read transaction.

    A round has a connection of its own: the last one that is closed checkpoints the WAL and removes it, and
    where one of ours stayed open it would never be one of the load's.
    """

    def __init__(self, case: Case, place: SqlPlace, shared: tuple[Any, ...]) -> None:
        self._board = Board(shared[0])
        self._place, data = place, case.spec.data
        if not all(one.sql for one in data.checks):
            prepare_process(place.directions(), str(case.seed))
            notes.remember_in(place.where)
        self._checks = Checks(data.checks, data.check_timeout_s)
        self._rounds = self._failed = self._unopened = 0
        self._broken: dict[str, Broken] = {}
        self._problem = ""

    def run(self, window: Window, ended: Callable[[], bool]) -> list[Series]:
        """Check again and again. What it finds stands on the board."""
        while not ended() and not self._problem:
            begun = time.monotonic()
            if reader := self._opened():
                self._round(reader)
            self._report()
            until = time.monotonic() + max(PAUSE_S, time.monotonic() - begun)
            while not ended() and time.monotonic() < until:
                time.sleep(_TICK_S)
        return []

    def _opened(self) -> Reader | None:
        try:
            reader = self._place.reader()
        except Exception:
            self._unopened += 1
            if self._unopened >= _MOST_UNOPENED:
                raise
            return None
        self._unopened = 0
        return reader

    def _round(self, reader: Reader) -> None:
        try:
            broken = list(self._checks.broken(reader))
            self._rounds += 1
            self._failed += bool(broken)
            for one in broken:
                # The first counter-example explains the later ones.
                self._broken.setdefault(one.name, one)
        except Unchecked as error:
            self._problem = str(error)
        except Exception as error:
            answer = reader.answer(error)
            if not answer or answer.kind != BUSY:
                raise  # else the next round finds nobody in the way
        finally:
            reader.close()

    def _report(self) -> None:
        known = {"rounds": self._rounds, "failed": self._failed, "problem": self._problem}
        # Where there is no room for all of it, what is broken has to be told all the same.
        for broken in fewer(list(self._broken.values())):
            if self._board.write({**known, "broken": broken}):
                break

    def close(self) -> None:
        """Each round has closed what it opened."""


def fewer(broken: list[Broken]) -> Iterator[list[Broken]]:
    """Yield what is broken with all examples, then in ever fewer words."""
    yield broken
    yield [one._replace(examples=tuple(text[:_BRIEF] for text in one.examples[:1])) for one in broken]
    yield [one._replace(name=one.name[:_BRIEF], examples=()) for one in broken[:1]]
