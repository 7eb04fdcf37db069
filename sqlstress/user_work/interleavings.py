"""Search for the order of statements after which a check of the user fails.

If a check failed during or after the load, or if a suspicion (possible race) is to be tested, the search
calls the user's transactions again, without load, on a copy of the files from before the load. It runs the
checks after each step:

1. A single process makes calls. If a check fails after a call, the fault is no race.
2. Two processes make calls in turn. If a check fails after a call, the fault needs no overlap of calls.
3. The first process pauses in a call, before one of its statements. If a check fails during the pause, and
   holds again after the call, other processes see work that is half done. Otherwise the second process makes
   calls during the pause. If a check fails after the first process has ended its call, the call is not safe
   from other calls at this place.

A check that fails now may be due to an earlier pause: for example, a reader has passed over an event, which
shows after the next event. Or the fault needs no pause, but is rare. So the place of the pause is confirmed:
on each of two new copies, calls pause only there, and a check fails again. On a further copy, the processes
make three times as many calls in turn, with the same share of calls of the transaction that paused, and no
check fails. If there is no time for so many calls, there is no result. These copies are of the files as they
were before the first pause, since some faults need more rows than the setup inserts.

If a call of the second process waits for a lock of the first, it continues after the end of the first call.
"""

from __future__ import annotations

import ast
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.engine.pool import to_namespace
from sqlstress.errors import Interrupted, SqlstressError
from sqlstress.races.suspicions import LOST_DATA
from sqlstress.recording.failures import statement_kind, takes_write_lock
from sqlstress.report.results import Sighting
from sqlstress.system.processes import ChildCaller
from sqlstress.target import target_name
from sqlstress.user_work import ALONE, BETWEEN, HALF, IN_TURN, INTERLEAVING, ORDERS, SUSPICION
from sqlstress.user_work.check_runner import CheckRunner
from sqlstress.user_work.rehearsal import (
    FOLDER,
    GO,
    PAUSED,
    START_S,
    STEP_S,
    Files,
    Opener,
    call_and_pause,
    call_once,
    connect,
    content,
    one_line,
    with_limit,
    write_folder,
)

if TYPE_CHECKING:
    from sqlstress.races.traced_statements import TracedStatement
    from sqlstress.report.case import Case
    from sqlstress.system.interrupt import Pulse
    from sqlstress.user_work.checks import CheckFailure
    from sqlstress.user_work.options import Invariant

Statements = Sequence["TracedStatement"]

ALONE_S, TURNS_S, PAUSES_S = 1.0, 0.5, 4.0
"""Time limits of the three parts of the search, in seconds, without the start of the processes."""
CONFIRM_S, CONFIRMATIONS, MAX_CONFIRMED = 1.5, 2, 4
"""Time limit to confirm a place of a pause once, in seconds; confirmations per place; maximum of places."""
LAST_S = 3.0
"""Time limit, in seconds, of the calls in turn that end a search in which no pause was confirmed."""
SEARCH_S = 12.0
"""Time in seconds after which no further place is confirmed."""
CONTROL_S, CONTROLS = 6.0, 3
"""Time limit of the calls in turn that follow, in seconds, and their number.

The number is a multiple of the calls that were needed to confirm the place.
"""
CALL_S = 2.0
"""Time limit of a call, in seconds. A longer call ends the search."""
LOCK_S = 0.1
"""Time in seconds after which a call in the second process counts as waiting for a lock.

The duration of the slowest call in turn is added twice.
"""
MAX_PAUSES = 12
"""Maximum number of places in a transaction at which calls pause."""
DATA = "data"
"""Name of the folder with a copy of the files."""
MAX_OTHERS = 3
"""Maximum number of calls that the second process makes at a pause."""
MAX_IN_TURN = 2
"""Maximum number of calls in turn that each process makes after a pause."""
MIN_ORDERS = 10
"""Minimum number of pauses in calls of a transaction, with calls of another process, to test a suspicion."""
_WORDS = re.compile(r"\w+")


class SearchResult(NamedTuple):
    """Step after which a check fails, and the extent of the search."""

    found: Sighting | None = None
    """Observation of the step; None if the checks held after all steps."""
    orders: Mapping[str, int] = {}
    """Number of calls in which another process made calls at a pause, by name of the paused transaction."""


def search_interleavings(
    case: Case, files: Files, where: Path, opening: Opener, pulse: Pulse
) -> SearchResult:
    """Search for the step after which a check of the user fails.

    `files` are the trial's files from before the load. Copies of the files are in the folder `where` while
    the search runs. The result is empty if the target is not SQLite.
    """
    if not files or target_name(case.driver) != "sqlite":
        return SearchResult()
    with tempfile.TemporaryDirectory(dir=where, prefix=FOLDER, ignore_cleanup_errors=True) as folder:
        search = _Search(to_namespace(case), files, Path(folder), opening, pulse)
        try:
            return search.run()
        except Interrupted:
            raise
        except Exception:  # A call took too long, or ended its process, or a check could not run.
            return SearchResult()


class _Place(NamedTuple):
    """Place at which calls of a transaction pause."""

    transaction: str
    number: int
    """Number of the statement before which they pause, from 0."""


class _Search:
    """Search for the step after which a check fails. Each part of the search has a copy of the files."""

    def __init__(self, case: Case, files: Files, folder: Path, opening: Opener, pulse: Pulse) -> None:
        self._case, self._files, self._folder = case, files, folder
        self._opening, self._pulse = opening, pulse
        self._copies = count(1)

    @contextmanager
    def _copy(self, files: Files) -> Iterator[_Stage]:
        folder = self._folder / str(next(self._copies))
        if not write_folder(files, folder / DATA):
            raise SqlstressError("cannot copy the files.")
        stage = _Stage(self._case, folder, self._opening, self._pulse)
        try:
            stage.connect()
            yield stage
        finally:
            stage.end()

    def run(self) -> SearchResult:
        """Return the step after which a check fails, if it was found and confirmed."""
        until = time.monotonic() + SEARCH_S
        with self._copy(self._files) as first:
            if found := first.first_calls() or first.calls_of_one(ALONE_S) or first.calls_in_turn(TURNS_S):
                return _result(found)
            files = first.files() or self._files
            found = first.calls_with_pauses(first.places(), PAUSES_S)
            if not found or found.what == HALF:
                return _result(found) if found else SearchResult(orders=first.orders)
        for place in [*dict.fromkeys(reversed(first.made))][:MAX_CONFIRMED]:
            if time.monotonic() > until:
                break
            found, calls = self._confirmed(place, files)
            if found:
                return _result(self._controlled(found, place, files, CONTROLS * calls))
        with self._copy(files) as last:
            return _result(last.first_calls() or last.calls_in_turn(LAST_S))

    def _confirmed(self, place: _Place, files: Files) -> tuple[Sighting | None, int]:
        """Return the step after a pause at `place`, and the number of calls that were made to see it.

        The step is None unless a check fails on each of CONFIRMATIONS new copies of `files`.
        """
        found, calls = None, 0
        for _ in range(CONFIRMATIONS):
            with self._copy(files) as again:
                found = again.first_calls() or again.calls_with_pauses([place], CONFIRM_S)
            calls += again.calls
            if not found:
                break
        return found, calls

    def _controlled(self, found: Sighting, place: _Place, files: Files, calls: int) -> Sighting | None:
        """Return `found`, the step after a pause at `place`, if all checks hold in `calls` calls in turn.

        If a check fails in these calls, return that step. Return None if the time is too short for the calls,
        or if `found` is a step without pause.
        """
        if found.what == HALF:
            return found
        with self._copy(files) as control:
            step = control.first_calls() or control.calls_without_pause(place.transaction, CONTROL_S, calls)
            is_confirmed = control.calls >= calls and found.what == BETWEEN
            return step or (found if is_confirmed else None)


def _result(found: Sighting | None) -> SearchResult:
    # If threads share a connection, no statement was traced.
    is_traced = found and (found.traits["first"] or found.traits["then"])
    return SearchResult(found if is_traced else None)


class _Stage:
    """Copy of the files, two processes that make calls on it, and a process that runs the checks."""

    def __init__(self, case: Case, folder: Path, opening: Opener, pulse: Pulse) -> None:
        self._case, self._opening, self._pulse = case, opening, pulse
        self._data, self._signals = folder / DATA, folder
        self._first, self._second = ChildCaller(), ChildCaller()
        self._checks = CheckRunner(case, self._data)
        self._random = Random(f"{case.seed}:{folder.name}:interleavings")
        self.calls = 0
        """Number of calls so far."""
        self.orders = Counter[str]()
        """Number of calls in which the second process made calls at a pause, by name of the transaction."""
        self.made: list[_Place] = []
        """Places of the pauses so far, and of calls that ended before the place."""
        self._pauses: dict[str, set[int]] = {}
        """Numbers of the statements before which a call can pause, by name of the transaction."""
        self._slowest_s = 0.0
        """Duration of the slowest call in turn, in seconds."""
        self._waits: set[_Place] = set()
        """Places at which other calls wait for a lock."""

    def connect(self) -> None:
        """Start the processes. Raises SqlstressError if a check fails before any call."""
        for number, process in enumerate((self._first, self._second)):
            # With equal seeds, processes would draw equal ids for new rows. The copies differ, too, because
            # a copy may begin with rows that calls on another copy have inserted.
            seed = f"{self._case.seed}:{self._signals.name}:{number}"
            case: Any = SimpleNamespace(**{**vars(self._case), "seed": seed})
            process.begin(connect, case, self._data, self._opening)
        self._checks.load()
        for process in (self._first, self._second):
            names = process.result(with_limit(self._pulse, START_S, "the connection"))
            self._pauses = {name: set() for name in names}
        if self._checks.before(self._pulse):
            raise SqlstressError("a check fails before any call.")

    def end(self) -> None:
        self._first.end()
        self._second.end()
        self._checks.end()

    def files(self) -> Files:
        """Return the files with their current content; empty if they are too large for copies in memory.

        Call it between two calls of the user's transactions, when no process writes.
        """
        files = content(self._data)
        return {name: text for name, text in files.items() if not name.endswith("-shm")}

    def places(self) -> list[_Place]:
        """Return the places at which calls can pause, as far as the calls so far show them."""
        return [_Place(name, pause) for name, pauses in self._pauses.items() for pause in sorted(pauses)]

    def first_calls(self) -> Sighting | None:
        """Call each transaction in each process. Return the step after which a check fails, or None.

        The first call of a process may be slow, and may run other statements, for example to open a
        connection. So later calls do not pause at the places that it shows.
        """
        for process, kind in ((self._first, ALONE), (self._second, IN_TURN)):
            for name in self._pauses:
                if found := self._single_call(process, kind, name):
                    return found
        self._pauses = {name: set() for name in self._pauses}
        return None

    def calls_of_one(self, limit_s: float) -> Sighting | None:
        """Make calls in the first process. Return the step after which a check fails, or None."""
        until = time.monotonic() + limit_s
        while time.monotonic() < until:
            if found := self._single_call(self._first, ALONE):
                return found
        return None

    def calls_in_turn(self, limit_s: float) -> Sighting | None:
        """Make calls in both processes in turn. Return the step after which a check fails, or None."""
        until = time.monotonic() + limit_s
        while time.monotonic() < until:
            for process in (self._first, self._second):
                if found := self._single_call(process, IN_TURN):
                    return found
        return None

    def calls_without_pause(self, transaction: str, limit_s: float, most: int) -> Sighting | None:
        """Make `most` calls in turn, in the mixture of `calls_with_pauses`, but without any pause.

        The calls of `transaction` are as frequent as they are if they pause. Return the step after which a
        check fails; None if all checks hold, or the time is too short.
        """
        until = time.monotonic() + limit_s
        while time.monotonic() < until and self.calls < most:
            others = [(self._second, self._draw()) for _ in range(self._random.randint(1, MAX_OTHERS))]
            calls = self._random.choice(
                ([(self._first, transaction), *others], [*others, (self._first, transaction)])
            )
            for _ in range(self._random.randint(1, MAX_IN_TURN)):
                calls += [(self._first, self._draw()), (self._second, self._draw())]
            for process, name in calls:
                if found := self._single_call(process, IN_TURN, name):
                    return found
        return None

    def calls_with_pauses(self, places: Sequence[_Place], limit_s: float) -> Sighting | None:
        """Make calls that pause at `places`, in random order, and after each of them some calls in turn.

        Return the last pause before a check fails; None if all checks hold.
        """
        until = time.monotonic() + limit_s
        while {*places} - self._waits:
            for place in self._random.sample(places, len(places)):
                if time.monotonic() >= until:
                    return None
                if place not in self._waits and (found := self._interleave(place)):
                    return found
        return None

    def _draw(self) -> str:
        """Return the name of a random transaction."""
        return self._random.choice([*self._pauses])

    def _single_call(self, process: ChildCaller, kind: str, name: str = "") -> Sighting | None:
        name, begun = name or self._draw(), time.monotonic()
        process.begin(call_once, name)
        statements = self._result(process)
        self._slowest_s = max(self._slowest_s, time.monotonic() - begun)
        self._pauses[name] |= _pauses_of(statements)
        broken = self._checks.broken(self._pulse)
        return _sighting(kind, name, statements, broken) if broken else None

    def _interleave(self, place: _Place) -> Sighting | None:
        """Make a call that pauses at `place`, with calls of the other process, and then calls in turn."""
        others: list[str] = []
        broken: list[CheckFailure] = []
        if self._pauses_at(place) and not (broken := self._checks.broken(self._pulse)):
            others = self._call_others(place)
        (self._signals / GO).touch()
        statements = self._result(self._first)
        waited = self._result(self._second) if others and place in self._waits else None
        # If the other call waited, it paused at its first lock while the rest of this call ran.
        paused = _Place(others[-1], _first_lock(waited)) if waited else place
        self.made.append(paused)
        if broken:
            if self._checks.broken(self._pulse):
                return _sighting(IN_TURN, place.transaction, statements, broken)
            return _sighting(HALF, place.transaction, statements, broken, place.number)
        if not others:
            broken = self._checks.broken(self._pulse)
            return _sighting(IN_TURN, place.transaction, statements, broken) if broken else None
        self.orders[place.transaction] += 1
        if broken := self._checks.broken(self._pulse) or self._broken_in_turn():
            if waited:
                statements, others = waited, [place.transaction]
            return _sighting(BETWEEN, paused.transaction, statements, broken, paused.number, others)
        return None

    def _broken_in_turn(self) -> list[CheckFailure]:
        """Make calls in turn after a pause, which may have a late effect. Return the checks that fail."""
        for process in (self._first, self._second) * self._random.randint(1, MAX_IN_TURN):
            process.begin(call_once, self._draw())
            self._result(process)
            if broken := self._checks.broken(self._pulse):
                return broken
        return []

    def _pauses_at(self, place: _Place) -> bool:
        """Begin a call in the first process. Return whether it pauses, when it has paused or ended."""
        for signal in (PAUSED, GO):
            (self._signals / signal).unlink(missing_ok=True)
        self._first.begin(call_and_pause, *place, self._signals)
        until = time.monotonic() + CALL_S
        while not (paused := (self._signals / PAUSED).exists()) and not self._first.has_answered():
            self._pulse()
            if time.monotonic() >= until:
                return False
            time.sleep(STEP_S)
        return paused

    def _call_others(self, place: _Place) -> list[str]:
        """Make calls in the second process, until one of them waits for a lock. Return their names."""
        others = []
        for _ in range(self._random.randint(1, MAX_OTHERS)):
            others.append(self._draw())
            self._second.begin(call_once, others[-1])
            until = time.monotonic() + LOCK_S + 2 * self._slowest_s
            while not self._second.has_answered():
                self._pulse()
                if time.monotonic() >= until:
                    self._waits.add(place)
                    return others
                time.sleep(STEP_S)
            self._result(self._second)
        return others

    def _result(self, process: ChildCaller) -> Statements:
        statements, _ = process.result(with_limit(self._pulse, CALL_S, "a call"))
        self.calls += 1
        return statements  # type: ignore[no-any-return]


def _sighting(
    kind: str,
    transaction: str,
    statements: Statements,
    broken: Sequence[CheckFailure],
    pause: int | None = None,
    others: Sequence[str] = (),
) -> Sighting:
    """Return the observation that the check `broken[0]` fails after a call, or at or after a pause in it.

    The call of `transaction` ran `statements`, and paused before the statement with the number `pause`; None
    without a pause. `others` are the calls of another process.
    """
    if pause is None:
        steps = [statement for statement in statements if _counts(statement)]
        first, then = (steps[0], steps[-1]) if steps else (None, None)
    else:
        first = next(filter(_counts, reversed(statements[:pause])), None)
        then = next(filter(_counts, statements[pause:]), None)
    ends = [statement for statement in statements[:pause] if statement_kind(statement.sql) == "commit"]
    return Sighting(
        INTERLEAVING,
        kind,
        1,
        ", ".join(broken[0].examples),
        {
            "transaction": transaction,
            "check": broken[0].name,
            "others": ", ".join(dict.fromkeys(others)),
            "first": one_line(first.sql) if first else "",
            "first_at": first.at if first else "",
            "then": one_line(then.sql) if then else "",
            "then_at": then.at if then else "",
            "committed_at": ends[-1].at if ends and kind == HALF else "",
        },
    )


def _counts(statement: TracedStatement) -> bool:
    return bool(statement.write or statement.reads)


def _pauses_of(statements: Statements) -> set[int]:
    """Return the numbers of the first MAX_PAUSES statements of a call that begin without the write lock."""
    pauses: list[int] = []
    locked = 0
    for number, statement in enumerate(statements):
        if statement.transaction != locked:
            pauses.append(number)
            locked = statement.transaction if takes_write_lock(statement.sql) else 0
    return {*pauses[:MAX_PAUSES]}


def _first_lock(statements: Statements) -> int:
    """Return the number of a call's first statement that takes the write lock."""
    locking = (number for number, statement in enumerate(statements) if takes_write_lock(statement.sql))
    return next(locking, 0)


# Facts for suspicions (possible races) that the search could not confirm.


def with_orders(
    sightings: Iterable[Sighting], checks: Sequence[Invariant], result: SearchResult
) -> tuple[Sighting, ...]:
    """Return the observations; add the fact ORDERS to each suspicion that the search has tested.

    `result` is the result of a search in which all checks held. A suspicion counts as tested only if a check
    would have shown the damage: the text of the check has the name of the table, and of a column that the
    suspected write sets.
    """
    words = [frozenset(_WORDS.findall(_text_of(check).lower())) for check in checks if not check.at_end]

    def with_order_count(sighting: Sighting) -> Sighting:
        if sighting.topic != SUSPICION or sighting.what not in LOST_DATA:
            return sighting
        orders = result.orders.get(sighting.traits["transaction"], 0)
        if orders < MIN_ORDERS or not any(_covers(check, sighting) for check in words):
            return sighting
        return replace(sighting, traits={**sighting.traits, ORDERS: str(orders)})

    return tuple(map(with_order_count, sightings))


def _covers(words: frozenset[str], sighting: Sighting) -> bool:
    columns = {*filter(None, sighting.traits["columns"].split(", "))}
    return sighting.traits["table"].lower() in words and (not columns or bool(columns & words))


def _text_of(check: Invariant) -> str:
    """Return the SQL of a check, or the source of its function; empty if the source cannot be read."""
    if check.sql:
        return check.sql
    file, _, name = check.where.rpartition(":")
    try:
        source = Path(file).read_text(encoding="utf-8")
        functions = [
            node
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.FunctionDef) and node.name == name
        ]
    except (OSError, ValueError, SyntaxError):
        return ""
    return "\n".join(ast.get_source_segment(source, function) or "" for function in functions)
