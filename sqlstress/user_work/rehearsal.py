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
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from sqlstress.engine.pool import plain
from sqlstress.errors import Interrupted, SqlstressError, plainly
from sqlstress.report.results import Sighting
from sqlstress.system.processes import call_apart
from sqlstress.target import target_name
from sqlstress.targets import open_place
from sqlstress.user_work import SUSPICION, UNREHEARSED
from sqlstress.user_work.suspicions import (
    LOST,
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
    from sqlstress.targets.place import Place

FOLDER = "rehearsal-"
ROUNDS = 30
CALLS_S = 1.0
"""How long the calls may take: no further round begins after it, and after the fewest."""
FEWEST = 10
"""Rounds in which a table that is empty at first is filled."""
PATIENCE_S = 15.0
"""How long all of it may take: an import, a connection, a call that waits for something."""
LARGEST = 1 << 30
"""Bytes of files that are copied at most."""
LARGEST_BEFORE = 1 << 24
"""Bytes of files that are kept as they were before the load."""
PATIENCE_BEFORE_S = 5.0
"""How long calls on these may take: who takes from an empty queue may wait for ever."""
_LONGEST = 200

Calls = Mapping[str, Callable[[], object]]
Opening = Callable[["Case", "Place", Tracer], Calls]
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


def rehearsed(case: Case, where: Path, before: Files, opening: str, pulse: Pulse) -> tuple[Sighting, ...]:
    """Return the suspicions that a rehearsal of a case raises; or why it could not be rehearsed.

    `where` has its data, to which no process is connected; `before` is what it was before the load. `opening`
    is the import string of an Opening.
    """
    if target_name(case.driver) != "sqlite":
        return ()
    with tempfile.TemporaryDirectory(dir=where, prefix=FOLDER, ignore_cleanup_errors=True) as folder:
        try:
            found = _apart(case, where, Path(folder, "after"), opening, pulse, PATIENCE_S)
        except Interrupted:
            raise
        except Exception as error:  # whatever the user's code raises as it is imported, or connects
            return (Sighting(UNREHEARSED, plainly(error)[:_LONGEST], 1),)
        if before and not _lost(found):
            found += _rehearsed_before(case, before, Path(folder), opening, pulse)
        return found


def _rehearsed_before(
    case: Case, before: Files, folder: Path, opening: str, pulse: Pulse
) -> tuple[Sighting, ...]:
    """Return what can be lost from the data as it was before the load; nothing, where calls fail on it."""
    kept = folder / "kept"
    try:
        for name, text in before.items():
            (kept / name).parent.mkdir(parents=True, exist_ok=True)
            (kept / name).write_bytes(text)
        return _lost(_apart(case, kept, folder / "before", opening, pulse, PATIENCE_BEFORE_S))
    except Interrupted:
        raise
    except Exception:  # whatever the user's code raises there: it was called once already
        return ()


def _lost(found: tuple[Sighting, ...]) -> tuple[Sighting, ...]:
    return tuple(one for one in found if one.what in LOST)


def _apart(
    case: Case, where: Path, copy: Path, opening: str, pulse: Pulse, patience_s: float
) -> tuple[Sighting, ...]:
    until = time.monotonic() + patience_s

    def limited() -> None:
        pulse()
        if time.monotonic() > until:
            raise SqlstressError(f"the calls took longer than {patience_s:g} s")

    return call_apart(limited, rehearse, plain(case), where, copy, opening)


def rehearse(case: Case, where: Path, copy: Path, opening: str) -> tuple[Sighting, ...]:
    """Do so in this process, whose connections are followed for good."""
    if sum(path.stat().st_size for path in where.rglob("*") if path.is_file()) > LARGEST:
        raise SqlstressError("the trial's files have more than 1 GiB")
    shutil.copytree(where, copy, ignore=shutil.ignore_patterns(f"{FOLDER}*"))
    tracer = Tracer()
    tracer.start()
    try:
        calls = resolve_name(opening)(case, open_place(case, copy), tracer)
        found = sightings(traced(calls, tracer))
        if tracer.is_shared and not found:
            return (Sighting(UNREHEARSED, "several threads may use one connection at once", 1),)
        return found
    finally:
        tracer.stop()


def traced(calls: Calls, tracer: Tracer) -> dict[str, list[tuple[Any, ...]]]:
    """Call each in turn, several times; return the statements of the calls of each."""
    found: dict[str, list[tuple[Any, ...]]] = {name: [] for name in calls}
    until, own = time.monotonic() + CALLS_S, os.getpid()
    for number in range(ROUNDS):
        for name, call in calls.items():
            tracer.begins_call()
            with suppress(Exception, SystemExit):
                call()
            if os.getpid() != own:
                os._exit(0)  # a fork of the user's has come back
            found[name].append((*tracer.call, *tracer.forks.heard()))
        if number >= FEWEST and time.monotonic() > until:
            break
    return found


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
