"""Rehearsal: a few more calls of each of the user's transactions, with traced SQL, to find races.

The calls run after the load and on a copy of the data, so they change neither the results of the load nor
files that the user keeps. If they show no possible loss of data, they are repeated on a copy from before the
load. There a transaction may take another path, for example because a queue still has items, or a key does
not exist yet.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlstress.engine.pool import to_namespace
from sqlstress.errors import Interrupted, SqlstressError, UsageError, plainly
from sqlstress.races.guards import ignored_lock
from sqlstress.races.old_values import old_values, old_writes, raise_values
from sqlstress.races.program_races import TracedProgram, repeated_calls
from sqlstress.races.protected_writes import OwnRows, rows_added_by
from sqlstress.races.suspicions import (
    FROM_MEMORY,
    LOST_DATA,
    Suspicion,
    suspicions,
    unchanged_columns,
    without,
)
from sqlstress.races.traced_statements import TracedStatement
from sqlstress.races.tracing import Tracer
from sqlstress.races.weak_checks import counters_of, id_reusing_tables, mixed_times, weak_checks
from sqlstress.recording import CONNECT
from sqlstress.report.results import Sighting
from sqlstress.system.processes import ChildCaller
from sqlstress.target import target_name
from sqlstress.targets import open_place
from sqlstress.targets.place import SERVER_FOLDER, TRIAL_FOLDER
from sqlstress.user_work import NOT_REHEARSED, SUSPICION
from sqlstress.user_work.loading import limit_time

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.system.interrupt import Pulse

FOLDER = "rehearsal-"
MAX_ROUNDS = 30
CALLS_S = 1.0
"""Time in seconds after which MIN_ROUNDS calls of a quick transaction are enough.

The time begins with the first call. Until then, each transaction is called up to MAX_ROUNDS times.
"""
MIN_ROUNDS = 10
"""Minimum number of calls of each quick transaction.

The first calls may find an empty table. Later calls find the rows that the first calls added.
"""
ALL_S = 5.0
"""Time limit for all calls of a rehearsal, in seconds, without the first start of the process."""
AFTER_S = 3.0
"""Time limit in seconds for calls on the data from after the load, if data from before were kept.

The remaining time is for calls on the data from before the load.
"""
START_S = 10.0
"""Time limit for the first start of the process (copy files, import, connect), in seconds."""
CALL_S = 2.0
"""Time limit of a call, in seconds: a call that takes an item from an empty queue may wait forever."""
SLOW_S = 0.1
"""Duration from which a transaction counts as slow, in seconds. Slow transactions are called last."""
REPEAT_S = 2.0
"""Time limit for the repetition of all calls with raised values, in seconds. The start does not count."""
PAUSED, GO = "paused", "go"
"""Names of the files by which a process that pauses in a call, and its parent process, send signals."""
LONGEST_PAUSE_S, STEP_S = 10.0, 0.001
"""Maximum time of a pause in a call, and time between two searches for the file GO, in seconds."""
MAX_BYTES = 1 << 30
"""Maximum total size of the trial's files for a rehearsal, in bytes."""
MAX_BYTES_BEFORE = 1 << 24
"""Maximum total size of the files from before the load, in bytes. Larger files are not kept."""
_LONGEST = 200
_SHARED = "a thread other than the one that opened a connection used it, or could"
_NO_TIME = f"the {ALL_S:g} s for all calls were over"

Calls = Mapping[str, Callable[[], object]]
Opener = Callable[["Case", Any, Tracer], Calls]
"""Function of (case, place, tracer) that opens the database in the rehearsal's process.

The result is a mapping from the name of each transaction to a function that calls the transaction once.
"""


Files = dict[str, bytes]
"""Contents of the files of a folder, by relative path."""


def content(where: Path) -> Files:
    """Return a folder's files for a later rehearsal; empty if above MAX_BYTES_BEFORE or unreadable."""
    with suppress(OSError):
        paths = [path for path in where.rglob("*") if path.is_file()]
        if sum(path.stat().st_size for path in paths) <= MAX_BYTES_BEFORE:
            return {str(path.relative_to(where)): path.read_bytes() for path in paths}
    return {}


def rehearse(
    case: Case, where: Path, before: Files, opening: Opener, medians_s: Mapping[str, float], pulse: Pulse
) -> tuple[Sighting, ...]:
    """Rehearse the case. Return an observation for each possible race and each transaction not examined.

    `where` is the data folder; no process may have its database open. `before` has the folder's files from
    before the load; empty if they were not kept. `medians_s` has the median duration of each transaction in
    the load. The result is empty if the target is not SQLite.
    """
    if target_name(case.driver) != "sqlite":
        return ()
    with tempfile.TemporaryDirectory(dir=where, prefix=FOLDER, ignore_cleanup_errors=True) as folder:
        after = Rehearsal(case, where, Path(folder, "after"), opening, medians_s)
        after.start(pulse, START_S)
        started = time.monotonic()
        after.run(pulse, started + (AFTER_S if before else ALL_S))
        result, examined = sightings(after.calls, after.own_rows), set[str]()
        if (
            before
            and after.calls
            and not _lost_data(result)
            and (old_folder := write_folder(before, Path(folder, "kept")))
        ):
            earlier = Rehearsal(case, old_folder, Path(folder, "before"), opening, after.durations_s)
            earlier.run(pulse, started + ALL_S)
            # `earlier.unexamined` is not reported. `after` has called the same transactions on the files from
            # after the load, and reports those that could not be examined on either copy.
            result += _lost_data(sightings(earlier.calls | earlier.openings, earlier.own_rows))
            examined = {name for name, calls in earlier.calls.items() if calls}
        result = _with_old_values(result, _old_values(after, Path(folder), pulse, _tables_of(result)))
        if after.is_shared and not result:
            return (Sighting(NOT_REHEARSED, _SHARED, 1),)
        return (*result, *after.unexamined(examined))


def _tables_of(observations: tuple[Sighting, ...]) -> set[str]:
    """Return the tables of the observed races that can lose data, without those of a number in memory."""
    return {sighting.traits["table"] for sighting in _lost_data(observations) if sighting.what != FROM_MEMORY}


def _with_old_values(
    observations: tuple[Sighting, ...], old_values: tuple[Sighting, ...]
) -> tuple[Sighting, ...]:
    """Return all observations, but no number in memory if an old value shows where the number comes from."""
    explained = {(sighting.traits["transaction"], sighting.traits["table"]) for sighting in old_values}
    return (
        *(
            sighting
            for sighting in observations
            if sighting.what != FROM_MEMORY
            or (sighting.traits["transaction"], sighting.traits["table"]) not in explained
        ),
        *old_values,
    )


def _old_values(first: Rehearsal, folder: Path, pulse: Pulse, known: Collection[str]) -> tuple[Sighting, ...]:
    """Repeat the calls of a rehearsal with raised values. Return possible races by values of earlier calls.

    Tables in `known` are left out: another race of them has been found.
    """
    opening, calls = first.openings.get(CONNECT, [()])[0], first.calls_in_order()
    writes = [old for old in old_writes(opening, calls, first.own_rows) if old.write.table[1] not in known]
    # If several threads use a connection, its trace ends early, and queries may be missing.
    files = first.files() if writes and not first.is_shared else {}
    raised_folder = write_folder(files, folder / "raised") if files else None
    if not raised_folder or not (raised := raise_values(raised_folder, first.first_copy, writes)):
        return ()
    again = first.on_copy_of(raised_folder, folder / "again")
    again.repeat(first.order, pulse)
    return tuple(
        _sighting(name, suspicion, count, len(first.calls[name]))
        for name, count, suspicion in old_values(writes, again.calls_in_order(), raised)
    )


def write_folder(files: Files, folder: Path) -> Path | None:
    try:
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(text)
    except OSError:
        return None
    return folder


def _lost_data(observations: tuple[Sighting, ...]) -> tuple[Sighting, ...]:
    return tuple(sighting for sighting in observations if sighting.what in LOST_DATA)


class Rehearsal:
    """Caller of a case's transactions in a separate process, on a copy of the trial's files.

    If a call ends the process or takes too long, a new process with a new copy calls the other transactions.
    """

    def __init__(
        self, case: Case, where: Path, copy: Path, opening: Opener, medians_s: Mapping[str, float]
    ) -> None:
        self._case, self._where, self._copy, self._opening = to_namespace(case), where, copy, opening
        self.durations_s = dict(medians_s)
        """Duration of each transaction in s: of the longest call; before any call, the load's median."""
        self._process: ChildCaller | None = None
        self._starts = count()
        self._problem = ""
        """Reason why some transactions were not called; empty if all were."""
        self._stopped: dict[str, str] = {}
        """Reason why a transaction is not called again, by the transaction's name."""
        self.is_shared = False
        """Whether any connection could not be traced to the end, because several threads used it."""
        self.calls: dict[str, list[tuple[TracedStatement, ...]]] = {}
        """Traced statements of each call, by name of the transaction."""
        self.order: list[str] = []
        """Names of the transactions in the order of the calls in the first process."""
        self.own_rows: list[OwnRows] = []
        """Rows that only one process writes, because it added them when it connected; one per process."""
        self.openings: dict[str, list[tuple[TracedStatement, ...]]] = {}
        """Traced statements of @connect in each process, under the key CONNECT; empty before `start`."""

    def start(self, pulse: Pulse, limit_s: float) -> None:
        """Start a process that copies the files and connects. If it fails, record the reason."""
        process = ChildCaller()
        copy = self._copy / str(next(self._starts))
        pulse = with_limit(pulse, limit_s, "the copy of the files, the import and the connection")
        try:
            names, own_rows, opening = process.call(
                pulse, start, self._case, self._where, copy, self._opening
            )
        except Interrupted:
            raise
        except Exception as error:  # The user's code may raise any error.
            self._problem = _error_text(error)
            return
        self._process = process
        self.own_rows.append(own_rows)
        self.openings.setdefault(CONNECT, []).append(opening)
        for name in names:
            self.calls.setdefault(name, [])

    def run(self, pulse: Pulse, until: float) -> None:
        """Call the transactions until the time `until` (by `time.monotonic`), then end the process."""
        try:
            while time.monotonic() < until:
                if not self._process:
                    self.start(pulse, until - time.monotonic())
                if not self._process or self._call_all(self._process, pulse, until):
                    return
                self._end()
            self._problem = self._problem or _NO_TIME
        finally:
            self._end()

    @property
    def first_copy(self) -> Path:
        """Folder of the files that the first process used."""
        return self._copy / "0"

    def files(self) -> Files:
        """Return the contents of the trial's files, without copies; empty if they are too large."""
        files = content(self._where)
        return {name: text for name, text in files.items() if not name.startswith(FOLDER)}

    def on_copy_of(self, where: Path, copy: Path) -> Rehearsal:
        """Return a rehearsal of the case on the files in `where`."""
        return Rehearsal(self._case, where, copy, self._opening, self.durations_s)

    def calls_in_order(self) -> list[tuple[str, tuple[TracedStatement, ...]]]:
        """Return the calls of the first process in order, each with the name of the transaction."""
        calls = {name: iter(statements) for name, statements in self.calls.items()}
        return [(name, next(calls[name])) for name in self.order]

    def repeat(self, order: Sequence[str], pulse: Pulse) -> None:
        """Call the transactions in an order, in one process, until a call fails or REPEAT_S are over."""
        try:
            self.start(pulse, START_S)
            until = time.monotonic() + REPEAT_S
            for name in order:
                if not self._process or time.monotonic() >= until:
                    return
                if not self._call(self._process, name, pulse, until):
                    return
        finally:
            self._end()

    def _end(self) -> None:
        if self._process:
            self._process.end()
        self._process = None

    def _call_all(self, process: ChildCaller, pulse: Pulse, until: float) -> bool:
        """Call each transaction several times. Return False if a call ended the process or took too long."""
        started = time.monotonic()
        while name := self._next(time.monotonic() - started):
            now = time.monotonic()
            if now >= until:
                self._problem = _NO_TIME
                return True
            if not self._call(process, name, pulse, until):
                return False
        return True

    def _call(self, process: ChildCaller, name: str, pulse: Pulse, until: float) -> bool:
        """Call a transaction once. Return False if the call ended the process or took too long."""
        now = time.monotonic()
        limit_s = until - now if self._is_slow(name) else min(until - now, CALL_S)
        try:
            answer = process.call(with_limit(pulse, limit_s, "a call"), call_once, name)
        except Interrupted:
            raise
        except Exception as error:  # The call took too long, or ended its process.
            self._stopped[name] = _error_text(error)
            return False
        statements, self.is_shared = answer
        self.calls[name].append(statements)
        if len(self.own_rows) == 1:
            self.order.append(name)
        self.durations_s[name] = max(self.durations_s.get(name, 0.0), time.monotonic() - now)
        return True

    def _next(self, took_s: float) -> str | None:
        """Return the next transaction to call, quick ones first; None if all were called often enough.

        `took_s` is the time since the first call in this process. After CALLS_S, MIN_ROUNDS calls are enough
        for quick transactions.
        """
        names = [name for name in self.calls if name not in self._stopped]
        quick = [name for name in names if not self._is_slow(name)]
        most = MAX_ROUNDS if took_s <= CALLS_S else MIN_ROUNDS
        for group, rounds in ((quick, most), (names, MAX_ROUNDS)):
            due = [
                name
                for name in group
                if len(self.calls[name]) < rounds and (group is quick or name not in quick)
            ]
            if due:
                return min(due, key=lambda name: (len(self.calls[name]), self.durations_s.get(name, 0.0)))
        return None

    def _is_slow(self, name: str) -> bool:
        return self.durations_s.get(name, 0.0) > SLOW_S

    def unexamined(self, others: Collection[str] = ()) -> Iterator[Sighting]:
        """Yield the reason for each transaction that was never traced and is not in `others`."""
        if not self.calls:
            yield Sighting(NOT_REHEARSED, self._problem, 1)
        for name, calls in self.calls.items():
            if not calls and name not in others:
                reason = self._stopped.get(name, self._problem)
                yield Sighting(NOT_REHEARSED, reason, 1, "", {"transaction": name})


def with_limit(pulse: Pulse, seconds: float, label: str) -> Pulse:
    return limit_time(pulse, seconds, UsageError(f"{label} took longer than {seconds:.2g} s"))


def _error_text(error: Exception) -> str:
    return plainly(error)[:_LONGEST]


# Functions that run in the process of a rehearsal.


_started: list[tuple[Calls, Tracer]] = []
"""Functions of the transactions, and the tracer: a list of one pair; empty before `start`."""


def start(
    case: Case, where: Path, copy: Path, opening: Opener
) -> tuple[list[str], OwnRows, tuple[TracedStatement, ...]]:
    """Copy the files in `where` and connect.

    Return the names of the transactions, the rows that only this process writes, and the statements that ran
    while the process connected.
    """
    # If sqlstress has also started a database server, the folder may contain the server's files. Skip them.
    server = () if where.name == TRIAL_FOLDER else (SERVER_FOLDER,)
    files = (path for path in where.rglob("*") if path.relative_to(where).parts[0] not in server)
    if sum(path.stat().st_size for path in files if path.is_file()) > MAX_BYTES:
        raise SqlstressError("the trial's files have more than 1 GiB")
    shutil.copytree(where, copy, ignore=shutil.ignore_patterns(f"{FOLDER}*", *server))
    names = connect(case, copy, opening)
    ((_, tracer),) = _started
    return names, rows_added_by(tracer.call), tuple(tracer.call)


def connect(case: Case, folder: Path, opening: Opener) -> list[str]:
    """Connect to the database in `folder`. Return the names of the transactions."""
    tracer = Tracer()
    tracer.start()
    calls = opening(case, open_place(case, folder), tracer)
    _started[:] = [(calls, tracer)]
    return [*calls]


def call_once(name: str) -> tuple[tuple[TracedStatement, ...], bool]:
    """Call a transaction. Return its traced statements, and whether any trace has ended early.

    The trace of a connection ends early if several threads use the connection.
    """
    ((calls, tracer),) = _started
    return traced(calls[name], tracer), tracer.is_shared


def call_and_pause(name: str, number: int, signals: Path) -> tuple[tuple[TracedStatement, ...], bool]:
    """Like `call_once`, but pause before the statement with this number, counted from 0.

    During the pause, there is a file `paused` in the folder `signals`. Continue when there is a file `go`.
    """
    ((_, tracer),) = _started

    def pause(count: int) -> None:
        if count == number:
            (signals / PAUSED).touch()
            until = time.monotonic() + LONGEST_PAUSE_S
            while not (signals / GO).exists() and time.monotonic() < until:
                time.sleep(STEP_S)

    tracer.before_statement = pause
    try:
        return call_once(name)
    finally:
        tracer.before_statement = None


def traced(call: Callable[[], object], tracer: Tracer) -> tuple[TracedStatement, ...]:
    """Call a function and return the traced statements that it ran. Ignore errors of the call."""
    process = os.getpid()
    tracer.begin_call()
    with suppress(Exception, SystemExit):
        call()
    if os.getpid() != process:
        os._exit(0)  # The user's code forked this process in `call`, and both processes have returned.
    return (*tracer.call, *tracer.forks.drain())


def sightings(
    traced: Mapping[str, list[tuple[Any, ...]]], own_rows: Sequence[OwnRows] = ()
) -> tuple[Sighting, ...]:
    """Return each possible race of two statements once, with the number of calls that show the race.

    `traced` has the statements of each call, by transaction. Two statements are no race if each call holds
    the same lock around both, or if only this process writes the rows (`own_rows`).
    """
    all_calls = [call for calls in traced.values() for call in calls]
    columns, program = unchanged_columns(all_calls), TracedProgram(all_calls)
    reusing, counters = id_reusing_tables(all_calls), counters_of(all_calls)
    first: dict[tuple[str, ...], Suspicion] = {}
    counts: Counter[tuple[str, ...]] = Counter()
    for name, calls in traced.items():
        for suspicion in (*repeated_calls(calls), *program.pages_of_calls(calls), *mixed_times(calls)):
            first.setdefault((name, *suspicion.key), suspicion)
            counts[name, *suspicion.key] = len(calls)
        for call in calls:
            call_suspicions = {
                suspicion.key: suspicion
                for suspicion in (
                    *suspicions(without(columns, call)),
                    *program.suspicions(call),
                    *weak_checks(call, reusing, counters),
                )
            }
            for key, suspicion in call_suspicions.items():
                previous = first.setdefault((name, *key), suspicion)
                first[name, *key] = previous._replace(locks=previous.locks & suspicion.locks)
                counts[name, *key] += 1
    # A lock may be a row that a call claims, for example by an UPDATE that marks the row as taken. Such a row
    # is only a lock if each call claims the same row. If a single call shows the race, the row may be a work
    # item that no other call claims, so the locks of a single call do not count.
    # Reports show the first race of each kind. Races with a write in the `else` branch of a script come last.
    return tuple(
        _sighting(key[0], suspicion, counts[key], len(traced[key[0]]))
        for key, suspicion in sorted(first.items(), key=lambda pair: pair[1].is_in_else)
        if (not suspicion.locks or counts[key] == 1)
        and (key[0] == CONNECT or not _is_of_own_rows(suspicion, own_rows))
    )


def _sighting(transaction: str, suspicion: Suspicion, count: int, calls: int) -> Sighting:
    """Return the observation of a suspicion, which `count` of all `calls` of a transaction show."""
    return Sighting(
        SUSPICION,
        suspicion.code,
        count,
        "",
        {
            "transaction": transaction,
            "calls": str(calls),
            "table": suspicion.table,
            "first": one_line(suspicion.first.sql),
            "first_at": suspicion.first.at,
            "then": one_line(suspicion.then.sql),
            "then_at": suspicion.then.at,
            "effect": suspicion.effect,
            "kept": ", ".join(suspicion.kept_columns),
            "columns": ", ".join(sorted(suspicion.then.write.sets)) if suspicion.then.write else "",
            "ignored_lock": ignored_lock(suspicion.first.stack),
            **({"late": "yes"} if suspicion.begins_late else {}),
        },
    )


def _is_of_own_rows(suspicion: Suspicion, own_rows: Sequence[OwnRows]) -> bool:
    write = suspicion.then.write
    return write is not None and any(rows.has(write) for rows in own_rows)


def one_line(sql: str) -> str:
    text = " ".join(sql.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
