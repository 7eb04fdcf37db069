"""Each transaction is called a few times more, after the load, on a copy, and its statements are traced.

So nothing of it is in a figure, in a check, or in files that are kept. Where that raises no suspicion of lost
data, they are called again on the data as it was before the load: after it a limit may be reached, a queue
empty, and each key there.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlstress.engine.pool import plain
from sqlstress.errors import Interrupted, SqlstressError, UsageError, plainly
from sqlstress.report.results import Sighting
from sqlstress.system.processes import Apart
from sqlstress.target import target_name
from sqlstress.targets import open_place
from sqlstress.user_work import SUSPICION, UNREHEARSED
from sqlstress.user_work.loading import limited
from sqlstress.user_work.suspicions import (
    LOST,
    Statement,
    Suspicion,
    constant,
    copies,
    stale_copies,
    suspicions,
    without,
)
from sqlstress.user_work.tracing import Tracer

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.system.interrupt import Pulse

FOLDER = "rehearsal-"
ROUNDS = 30
CALLS_S = 1.0
"""Seconds of the calls of quick transactions: no round begins later, except for the fewest."""
FEWEST = 10
"""Rounds in which a table that is empty at first is filled."""
ALL_S = 5.0
"""Seconds that all rehearsals of a case may take, except for the first start."""
AFTER_S = 3.0
"""The seconds among them that are for the data after the load."""
START_S = 10.0
"""Seconds that the first start may take: a copy of the files, an import, a connection."""
CALL_S = 2.0
"""Seconds that a call may take: a call that takes from an empty queue may wait for ever."""
SLOW_S = 0.1
"""Seconds: transactions whose median in the load is longer are called after the others."""
LARGEST = 1 << 30
"""Bytes of files that are copied at most."""
LARGEST_BEFORE = 1 << 24
"""Bytes of files that are kept as they were before the load."""
_LONGEST = 200
_SHARED = "several threads use one connection at once"
_NO_TIME = f"the {ALL_S:g} s for all calls were over"

Calls = Mapping[str, Callable[[], object]]
Opening = Callable[["Case", Any, Tracer], Calls]
"""Connects, and returns what calls each transaction; connections are followed already."""


Files = dict[str, bytes]
"""The content of a folder, by paths in it."""


def content(where: Path) -> Files:
    """Return the files of a folder, to rehearse on them later; none, if they are large."""
    with suppress(OSError):
        paths = [path for path in where.rglob("*") if path.is_file()]
        if sum(path.stat().st_size for path in paths) <= LARGEST_BEFORE:
            return {str(path.relative_to(where)): path.read_bytes() for path in paths}
    return {}


def rehearsed(
    case: Case, where: Path, before: Files, opening: Opening, medians_s: Mapping[str, float], pulse: Pulse
) -> tuple[Sighting, ...]:
    """Return the suspicions that a rehearsal of a case raises; or why it could not be rehearsed.

    `where` has its data, to which no process is connected; `before` is what it was before the load.
    `medians_s` are the durations of transactions in the load.
    """
    if target_name(case.driver) != "sqlite":
        return ()
    with tempfile.TemporaryDirectory(dir=where, prefix=FOLDER, ignore_cleanup_errors=True) as folder:
        after = Rehearsal(case, where, Path(folder, "after"), opening, medians_s)
        after.start(pulse, START_S)
        begun = time.monotonic()
        after.run(pulse, begun + (AFTER_S if before else ALL_S))
        found, examined = sightings(after.calls), set[str]()
        if (
            before
            and after.calls
            and not _lost_data(found)
            and (kept := _folder_with(before, Path(folder, "kept")))
        ):
            again = Rehearsal(case, kept, Path(folder, "before"), opening, after.durations_s)
            again.run(pulse, begun + ALL_S)
            # Calls that fail on this data have been made before.
            found += _lost_data(sightings(again.calls))
            examined = {name for name, calls in again.calls.items() if calls}
        if after.is_shared and not found:
            return (Sighting(UNREHEARSED, _SHARED, 1),)
        return (*found, *after.unexamined(examined))


def _folder_with(files: Files, folder: Path) -> Path | None:
    """Return a folder with files; None if they could not be written."""
    try:
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(text)
    except OSError:
        return None
    return folder


def _lost_data(found: tuple[Sighting, ...]) -> tuple[Sighting, ...]:
    return tuple(sighting for sighting in found if sighting.what in LOST)


class Rehearsal:
    """Calls of a case's transactions on a copy of its files, in a process of its own.

    If a call ends the process, or takes too long, another process calls the other transactions.
    """

    def __init__(
        self, case: Case, where: Path, copy: Path, opening: Opening, medians_s: Mapping[str, float]
    ) -> None:
        self._case, self._where, self._copy, self._opening = plain(case), where, copy, opening
        self.durations_s = dict(medians_s)
        """The longest call of each transaction by now; before the first call, its median in the load."""
        self._process: Apart | None = None
        self._starts = count()
        self._problem = ""
        """Why not all transactions were called; empty if all were."""
        self._stopped: dict[str, str] = {}
        """By transaction, why it is not called again."""
        self.is_shared = False
        """Whether a connection was let go of, since threads used it at once."""
        self.calls: dict[str, list[tuple[Statement, ...]]] = {}
        """By transaction, the statements of each of its calls."""

    def start(self, pulse: Pulse, limit_s: float) -> None:
        """Copy the files, import the user's code and connect, within `limit_s`."""
        process = Apart()
        copy = self._copy / str(next(self._starts))
        pulse = _with_limit(pulse, limit_s, "the copy of the files, the import and the connection")
        try:
            names = process.call(pulse, start, self._case, self._where, copy, self._opening)
        except Interrupted:
            raise
        except Exception as error:  # whatever the user's code raises as it is imported, or connects
            self._problem = _text(error)
            return
        self._process = process
        for name in names:
            self.calls.setdefault(name, [])

    def run(self, pulse: Pulse, until: float) -> None:
        """Call the transactions until a moment of time.monotonic(); the process ends after it."""
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

    def _end(self) -> None:
        if self._process:
            self._process.end()
        self._process = None

    def _call_all(self, process: Apart, pulse: Pulse, until: float) -> bool:
        """Call each transaction several times; return False if a call has stopped the process."""
        begun = time.monotonic()
        while name := self._next(time.monotonic() - begun):
            now = time.monotonic()
            if now >= until:
                self._problem = _NO_TIME
                return True
            limit_s = until - now if self._is_slow(name) else min(until - now, CALL_S)
            try:
                answer = process.call(_with_limit(pulse, limit_s, "a call"), call_once, name)
            except Interrupted:
                raise
            except Exception as error:  # it took too long, or ended its process
                self._stopped[name] = _text(error)
                return False
            statements, self.is_shared = answer
            self.calls[name].append(statements)
            self.durations_s[name] = max(self.durations_s.get(name, 0.0), time.monotonic() - now)
        return True

    def _next(self, took_s: float) -> str | None:
        """Return the transaction to call, quick transactions in turn first; None at the end."""
        names = [name for name in self.calls if name not in self._stopped]
        quick = [name for name in names if not self._is_slow(name)]
        most = ROUNDS if took_s <= CALLS_S else FEWEST
        for group, rounds in ((quick, most), (names, ROUNDS)):
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
        """Yield the reasons for transactions without an examined call, except for `others`."""
        if not self.calls:
            yield Sighting(UNREHEARSED, self._problem, 1)
        for name, calls in self.calls.items():
            if not calls and name not in others:
                why = self._stopped.get(name, self._problem)
                yield Sighting(UNREHEARSED, why, 1, "", {"transaction": name})


def _with_limit(pulse: Pulse, seconds: float, what: str) -> Pulse:
    return limited(pulse, seconds, UsageError(f"{what} took longer than {seconds:.2g} s"))


def _text(error: Exception) -> str:
    return plainly(error)[:_LONGEST]


# What the process does.


_started: list[tuple[Calls, Tracer]] = []
"""The calls and the tracer of this process, if it rehearses."""


def start(case: Case, where: Path, copy: Path, opening: Opening) -> list[str]:
    """Copy files, and connect; return the names of the transactions. Connections are followed for good."""
    if sum(path.stat().st_size for path in where.rglob("*") if path.is_file()) > LARGEST:
        raise SqlstressError("the trial's files have more than 1 GiB")
    shutil.copytree(where, copy, ignore=shutil.ignore_patterns(f"{FOLDER}*"))
    tracer = Tracer()
    tracer.start()
    calls = opening(case, open_place(case, copy), tracer)
    _started[:] = [(calls, tracer)]
    return [*calls]


def call_once(name: str) -> tuple[tuple[Statement, ...], bool]:
    """Call a transaction; return its statements, and whether a connection was let go of by now."""
    ((calls, tracer),) = _started
    return traced(calls[name], tracer), tracer.is_shared


def traced(call: Callable[[], object], tracer: Tracer) -> tuple[Statement, ...]:
    """Return the statements of a call."""
    process = os.getpid()
    tracer.begins_call()
    with suppress(Exception, SystemExit):
        call()
    if os.getpid() != process:
        os._exit(0)  # a fork of the user's has come back
    return (*tracer.call, *tracer.forks.heard())


def sightings(traced: Mapping[str, list[tuple[Any, ...]]]) -> tuple[Sighting, ...]:
    """Return what the calls of each transaction make suspicious, each kind once."""
    every = [call for calls in traced.values() for call in calls]
    pairs, columns = copies(every), constant(every)
    first: dict[tuple[str, ...], Suspicion] = {}
    counts: Counter[tuple[str, ...]] = Counter()
    for name, calls in traced.items():
        for call in calls:
            found = {
                one.key: one for one in (*suspicions(without(columns, call)), *stale_copies(call, pairs))
            }
            for key, one in found.items():
                before = first.setdefault((name, *key), one)
                first[name, *key] = before._replace(guards=before.guards & one.guards)
                counts[name, *key] += 1
    # What is taken in one call only, and given back, may be a row of work; a lock is the same in each call.
    return tuple(
        Sighting(
            SUSPICION,
            one.code,
            counts[key],
            "",
            {
                "transaction": key[0],
                "calls": str(len(traced[key[0]])),
                "table": one.table,
                "first": _line(one.first.sql),
                "first_at": one.first.at,
                "then": _line(one.then.sql),
                "then_at": one.then.at,
            },
        )
        for key, one in first.items()
        if not one.guards or counts[key] == 1
    )


def _line(sql: str) -> str:
    text = " ".join(sql.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
