"""Runs the user's checks: a query must return no rows, a function must not raise; neither takes for ever."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.errors import UsageError, plainly, said
from sqlstress.system.sharing import shared_array
from sqlstress.targets.views import BUSY, INTERRUPTED
from sqlstress.user_work.loading import Unloadable, load, only_begins

if TYPE_CHECKING:
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
        self._functions = {one.where: function_of(one.where) for one in invariants if not one.sql}

    def broken(self, reader: Reader) -> Iterator[Broken]:
        """Yield the checks that fail, all seen in one snapshot of a connection. Raises Unchecked."""
        self._reader = reader
        self._reader.begin()
        try:
            for one in self._invariants:
                if found := self._broken(one):
                    yield found
        finally:
            self._reader.end()

    def _broken(self, one: Invariant) -> Broken | None:
        with self._attributed(one), self._interrupted():
            if one.sql:
                rows = self._reader.first(one.sql, MOST_ROWS)
                return Broken(one.name, len(rows), tuple(map(_row, rows[:EXAMPLES]))) if rows else None
            return self._called(one)

    def _called(self, one: Invariant) -> Broken | None:
        def query(sql: str, params: Sequence[Any] = ()) -> list[Row]:
            return self._reader.rows(sql, params)

        begun = time.monotonic()
        try:
            self._functions[one.where](query)
        except SystemExit as error:
            raise Unchecked(
                f"the check {one.name} ({one.where}) ends its process: let it raise AssertionError instead."
            ) from error
        except Exception as error:
            if self._reader.answer(error):
                raise
            text = said(error) if isinstance(error, AssertionError) else plainly(error)
            return Broken(one.name, 1, (text[:_WIDEST] or "it is not so",))
        # Its SQL is cut off; what Python does in between can't be, and is told afterwards.
        if time.monotonic() - begun > self._timeout_s:
            raise self._too_slow(one)
        return None

    def _too_slow(self, one: Invariant) -> Unchecked:
        return Unchecked(
            f"the check {one.name} ({one.where}) took longer than {self._timeout_s:g} s, with what it waited "
            "for locks: make it cheaper (an index?), or raise --check-timeout."
        )

    @contextmanager
    def _interrupted(self) -> Iterator[None]:
        timer = threading.Timer(self._timeout_s, self._reader.interrupt)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    @contextmanager
    def _attributed(self, one: Invariant) -> Iterator[None]:
        """Say of an error which check met it. BUSY is passed on as it is."""
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
            raise Unchecked(f"the check {one.name} ({one.where}) can't be run: {text}.") from error


def function_of(where: str) -> Callable[[Query], object]:
    """Return a function by its file and name, "checks.py:money". Raises Unchecked."""
    file, _, name = where.rpartition(":")
    try:
        found: Any = getattr(load(file), name)
    except (Unloadable, AttributeError) as error:
        raise Unchecked(f"the check {where} can't be loaded: {said(error).removesuffix('.')}.") from error
    if not callable(found) or only_begins(found):
        raise Unchecked(f"the check {where} looks at nothing when it is called: it is async, or no function.")
    function: Callable[[Query], object] = found
    return function


def _row(row: Row) -> str:
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

    def write(self, told: Any) -> bool:
        """Write something in the place of what stands there; return whether there is room for it."""
        data = pickle.dumps(told)
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
