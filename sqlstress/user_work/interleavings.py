"""Search for the order of statements after which a check of the user fails.

If a check failed during or after the load, or if a suspicion is to be tested, the search calls the user's
transactions again, without load, on a copy of the files from before the load. It runs the checks after each
step, in three parts:

1. A single process makes calls. If a check fails after a call, the fault is no race.
2. Two processes make calls in turn. If a check fails after a call, the call used a value that its process
   has kept from an earlier call.
3. The first process stops in a call, before one of its statements. If a check fails now, other processes see
   work that is half done. Otherwise the second process makes calls. If a check fails after the first process
   has ended its call, these calls must not run between the two statements.

So a result is never a guess: the check held before the step, and failed after it. If a call of the second
process waits for a lock of the first, it continues after the end of the first call.
"""

from __future__ import annotations

import ast
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.engine.pool import to_namespace
from sqlstress.errors import Interrupted
from sqlstress.races.suspicions import LOST_DATA
from sqlstress.recording.failures import takes_write_lock
from sqlstress.report.results import Sighting
from sqlstress.system.processes import ChildCaller
from sqlstress.user_work import ALONE, BETWEEN, HALF, INTERLEAVING, ORDERS, SUSPICION
from sqlstress.user_work.check_runner import CheckRunner
from sqlstress.user_work.rehearsal import (
    FOLDER,
    GO,
    START_S,
    STEP_S,
    STOPPED,
    Files,
    Opener,
    call_and_stop,
    call_once,
    connect,
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

ALONE_S, TURNS_S, STOPS_S = 1.0, 0.5, 3.0
"""Time limits of the three parts of the search, in seconds, without the start of the processes."""
CALL_S = 2.0
"""Time limit of a call, in seconds. A longer call ends the search."""
LOCK_S = 0.1
"""Time in seconds after which a call in the second process counts as waiting for a lock."""
MAX_STOPS = 12
"""Maximum number of statements of a call before which later calls of the transaction stop."""
MAX_OTHERS = 3
"""Maximum number of calls that the second process makes at a stop."""
MIN_ORDERS = 10
"""Minimum number of calls with a stop at which other calls ran, for a test of a suspicion."""
_WORDS = re.compile(r"\w+")


class SearchResult(NamedTuple):
    """Step after which a check fails, and the extent of the search."""

    found: Sighting | None = None
    """Observation of the step; None if the checks held after all steps."""
    orders: Mapping[str, int] = {}
    """Number of calls in which another process made calls at a stop, by name of the stopped transaction."""


def search_interleavings(
    case: Case, files: Files, where: Path, opening: Opener, pulse: Pulse
) -> SearchResult:
    """Search for the step after which a check of the user fails.

    `files` are the trial's files from before the load. The copy of the files is in the folder `where` while
    the search runs.
    """
    with tempfile.TemporaryDirectory(dir=where, prefix=FOLDER, ignore_cleanup_errors=True) as folder:
        data, signals = Path(folder, "data"), Path(folder, "signals")
        signals.mkdir()
        if not files or not write_folder(files, data):
            return SearchResult()
        search = _Search(to_namespace(case), data, signals, opening, pulse)
        try:
            found = search.run()
        except Interrupted:
            raise
        except Exception:  # A call took too long, or ended its process, or a check could not run.
            return SearchResult()
        finally:
            search.end()
        if not found:
            return SearchResult(orders=search.orders)
        # If threads share a connection, no statement was traced.
        return SearchResult(found) if found.traits["first"] or found.traits["then"] else SearchResult()


class _Search:
    """Search on the files in a folder, by two processes that make calls, and one that runs the checks."""

    def __init__(self, case: Case, data: Path, signals: Path, opening: Opener, pulse: Pulse) -> None:
        self._case, self._opening, self._pulse = case, opening, pulse
        self._data, self._signals = data, signals
        self._first, self._second = ChildCaller(), ChildCaller()
        self._numbers = count(1)
        self._checks = CheckRunner(case, data)
        self._random = Random(f"{case.seed}:interleavings")
        self._stops: dict[str, set[int]] = {}
        """Numbers of the statements before which a call can stop, by name of the transaction.

        `run` adds all names.
        """
        self.orders = Counter[str]()
        """Number of calls in which the second process made calls at a stop, by name of the transaction."""
        self._waits: set[tuple[str, int]] = set()
        """Stops, as name and number of the statement, at which other calls wait for a lock."""

    def end(self) -> None:
        self._first.end()
        self._second.end()
        self._checks.end()

    def run(self) -> Sighting | None:
        """Return an observation of the step after which a check fails; None if no step was found."""
        self._stops = {name: set() for name in self._connect(self._first)}
        self._checks.load()
        if self._checks.before(self._pulse):
            return None
        if found := self._alone():
            return found
        self._connect(self._second)
        return self._in_turn() or self._with_stops()

    def _connect(self, process: ChildCaller) -> list[str]:
        # With equal seeds, both processes would draw equal ids for new rows.
        case: Any = SimpleNamespace(
            **{**vars(self._case), "seed": f"{self._case.seed}:{next(self._numbers)}"}
        )
        pulse = with_limit(self._pulse, START_S, "the connection")
        return process.call(pulse, connect, case, self._data, self._opening)

    def _alone(self) -> Sighting | None:
        until = time.monotonic() + ALONE_S
        while time.monotonic() < until:
            name = self._draw()
            self._first.begin(call_once, name)
            statements = self._result(self._first)
            self._stops[name] |= _stops_of(statements)
            if broken := self._checks.broken(self._pulse):
                return _sighting(ALONE, name, statements, broken)
        return None

    def _in_turn(self) -> Sighting | None:
        until, other = time.monotonic() + TURNS_S, ""
        while time.monotonic() < until:
            for process in (self._first, self._second):
                name = self._draw()
                process.begin(call_once, name)
                statements = self._result(process)
                if broken := self._checks.broken(self._pulse):
                    return _sighting(BETWEEN, name, statements, broken, 0, [other])
                other = name
        return None

    def _with_stops(self) -> Sighting | None:
        until = time.monotonic() + STOPS_S
        while time.monotonic() < until:
            places = {(name, stop) for name, stops in self._stops.items() for stop in stops} - self._waits
            if not places:
                return None
            for name, stop in self._random.sample(sorted(places), len(places)):
                found = self._interleave(name, stop)
                if found or time.monotonic() >= until:
                    return found
        return None

    def _interleave(self, name: str, stop: int) -> Sighting | None:
        """Make a call that stops before its statement `stop`, and calls of the other process at the stop."""
        for signal in (STOPPED, GO):
            (self._signals / signal).unlink(missing_ok=True)
        self._first.begin(call_and_stop, name, stop, self._signals)
        others: list[str] = []
        broken: list[CheckFailure] = []
        if self._has_stopped() and not (broken := self._checks.broken(self._pulse)):
            others = self._call_others(name, stop)
        (self._signals / GO).touch()
        statements = self._result(self._first)
        self.orders[name] += bool(others)
        waited = self._result(self._second) if others and (name, stop) in self._waits else None
        if broken:
            return _sighting(HALF, name, statements, broken, stop)
        if not (broken := self._checks.broken(self._pulse)):
            return None
        if not others:
            return _sighting(ALONE, name, statements, broken)
        if waited:  # SQLite has kept the calls apart from the first process, but not the start of the last.
            return _sighting(BETWEEN, others[-1], waited, broken, _first_lock(waited), [name])
        return _sighting(BETWEEN, name, statements, broken, stop, others)

    def _has_stopped(self) -> bool:
        """Wait until the first process stops, or its call ends. Return whether it stops."""
        until = time.monotonic() + CALL_S
        while not (stopped := (self._signals / STOPPED).exists()) and not self._first.has_answered():
            self._pulse()
            if time.monotonic() >= until:
                return False
            time.sleep(STEP_S)
        return stopped

    def _call_others(self, name: str, stop: int) -> list[str]:
        """Make calls in the second process, until one of them waits for a lock. Return their names."""
        others = []
        for _ in range(self._random.randint(1, MAX_OTHERS)):
            others.append(self._draw())
            self._second.begin(call_once, others[-1])
            until = time.monotonic() + LOCK_S
            while not self._second.has_answered():
                self._pulse()
                if time.monotonic() >= until:
                    self._waits.add((name, stop))
                    return others
                time.sleep(STEP_S)
            self._result(self._second)
        return others

    def _draw(self) -> str:
        return self._random.choice([*self._stops])

    def _result(self, process: ChildCaller) -> Statements:
        statements, _ = process.result(with_limit(self._pulse, CALL_S, "a call"))
        return statements  # type: ignore[no-any-return]


def _sighting(
    kind: str,
    transaction: str,
    statements: Statements,
    broken: Sequence[CheckFailure],
    stop: int | None = None,
    others: Sequence[str] = (),
) -> Sighting:
    """Return the observation that the check `broken[0]` fails after a call, or at or after a stop in it.

    The call of `transaction` ran `statements`, and stopped before the statement with the number `stop`; None
    without a stop. `others` are the calls of another process.
    """
    if stop is None:
        steps = [statement for statement in statements if _counts(statement)]
        first, then = (steps[0], steps[-1]) if steps else (None, None)
    else:
        first = next(filter(_counts, reversed(statements[:stop])), None)
        then = next(filter(_counts, statements[stop:]), None)
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
        },
    )


def _counts(statement: TracedStatement) -> bool:
    return bool(statement.write or statement.reads)


def _stops_of(statements: Statements) -> set[int]:
    """Return the numbers of the first MAX_STOPS statements of a call that begin without the write lock."""
    stops: list[int] = []
    locked = 0
    for number, statement in enumerate(statements):
        if statement.transaction != locked:
            stops.append(number)
            locked = statement.transaction if takes_write_lock(statement.sql) else 0
    return {*stops[:MAX_STOPS]}


def _first_lock(statements: Statements) -> int:
    """Return the number of a call's first statement that takes the write lock."""
    locking = (number for number, statement in enumerate(statements) if takes_write_lock(statement.sql))
    return next(locking, 0)


# Suspicions that the search has tested: all checks held in many orders of calls.


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
