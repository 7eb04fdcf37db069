"""A worker in a process of its own, driven by either loop, with an account of where its time goes."""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from sqlstress.engine.loop import Window, work_through
from sqlstress.experiment import face_of
from sqlstress.report.case import Case
from sqlstress.system.importing import named
from sqlstress.system.processes import start
from sqlstress.targets import open_place
from tests.halves import open_work
from tests.targets.where.actors import LONG_NS, SlowFile, SlowSyncs, heard

SALT = 1


@contextmanager
def working(
    case: Case, words: Any, process: int, folder: Path, operations: int, slow_sync_s: float = 0.0
) -> Iterator[Any]:
    """Prepare the case's data and start its worker; yield our end of its pipe.

    It says "ready", does so many operations when it is told to, and tells its stamps.
    """
    work = open_work(case, folder, SALT, {})
    work.prepare(lambda: None)
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    told = (theirs, case, words, process, folder, work.shared, operations, slow_sync_s)
    own = context.Process(target=_main, args=told, daemon=True)
    start(own)
    theirs.close()
    try:
        assert heard(ours) == "ready"
        work.ended()
        yield ours
    finally:
        own.kill()
        own.join()


def _main(
    pipe: Any,
    case: Case,
    words: Any,
    process: int,
    folder: Path,
    shared: tuple[Any, ...],
    operations: int,
    slow_sync_s: float,
) -> None:
    slow = SlowSyncs(slow_sync_s) if slow_sync_s else None
    place = open_place(case, folder)
    watch = place.watch((words, 2), process)
    assert watch
    source = named(face_of(case).worker)(case, place, 1, SALT, shared)
    pipe.send("ready")
    heard(pipe)
    SlowFile.took_ns = 0
    asked = time.perf_counter_ns()
    window = Window(asked, asked, asked + LONG_NS)
    watch.window(window.opens_ns, window.closes_ns)
    totals = work_through(source, window, operations, array("q", [0]), array("q", [0]))
    had = time.perf_counter_ns()
    watch.end()
    pipe.send({"asked": asked, "had": had, "synced_ns": SlowFile.took_ns, "failed": totals.failed})
    source.close()
    del slow
