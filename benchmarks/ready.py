"""Workers that are connected and wait for their window: what memory each of them takes then."""

from __future__ import annotations

from pathlib import Path

import psutil

from benchmarks.tool import ToolCase, ToolFailure
from sqlstress.engine import pool as preload
from sqlstress.engine.folder import RunFolder
from sqlstress.engine.pool import Pool
from sqlstress.engine.trial import READY_EACH_S, READY_S
from sqlstress.experiment import face_of
from sqlstress.plan import cases_of
from sqlstress.report.case import Case
from sqlstress.system import starting
from sqlstress.targets import open_place


def shares(case: ToolCase, seed: int, directory: Path) -> list[int]:
    """Start a case's workers as a measurement does; return the share of each, in bytes, when all are ready.

    What several processes have counts in each for its part; on macOS and Windows what it shares with nobody.
    Raises ToolFailure when a worker could not start.
    """
    (found,) = cases_of(case.options(seed), "kv")
    return _shares(found, directory)


def _shares(case: Case, directory: Path) -> list[int]:
    with RunFolder(directory, keep=False) as folder, starting.opened(preload.modules([case])) as starter:
        place = open_place(case, folder.path)
        work = face_of(case).open_work(case, place, 1, {})
        work.prepare(_nobody_stops)
        try:
            with Pool(case, place, 1, work.shared, work.companions, starter=starter) as pool:
                pool.start(_nobody_stops)
                if failed := pool.wait_ready(READY_S + READY_EACH_S * case.concurrency, _nobody_stops):
                    raise ToolFailure(f"a worker could not start: {failed[0].reason}")
                return list(map(_share, pool.process_ids()))
        finally:
            work.discard()


def _share(pid: int) -> int:
    known = psutil.Process(pid).memory_full_info()
    return int(getattr(known, "pss", known.uss))


def _nobody_stops() -> None:
    """Go on."""
