"""Cases of methods, keys and cycles that sync nothing, and cells of methods run in this process."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlstress.engine.loop import FOREVER_NS, Totals, Window, closed_loop, timed_loop
from sqlstress.engine.pool import to_namespace
from sqlstress.engine.protocols import Findings, Outcome, Work
from sqlstress.experiments.classics.spec import Cycling, Method, Picks
from sqlstress.report import Verdict
from sqlstress.report.case import Case, Settings
from tests.experiments.measured import SALT, Measured, OnFiles
from tests.halves import open_source, open_work
from tests.pulses import nothing

# Methods: no other process is started.


FAST = Settings(journal_mode="delete", synchronous="off")
PATIENT_S = 60.0


def cell(
    phase: str,
    name: str,
    scale: int,
    *,
    transaction: bool = False,
    timeout_s: float = PATIENT_S,
    samples: int = 60,
    chunk: int = 7,
    **fields: Any,
) -> Case:
    """Return a case that syncs nothing."""
    method = Method(phase, name, transaction, scale, timeout_s, samples, chunk)
    return replace(Case(workload="methods", settings=FAST, spec=method), **fields)


@dataclass
class Ran(OnFiles):
    """A cell whose workers have worked one after the other, and whose file has not been verified."""

    case: Case
    folder: Path
    work: Work
    totals: list[Totals] = field(default_factory=list)
    findings: list[Findings] = field(default_factory=list)

    def verdict(self) -> Verdict:
        outcomes = [Outcome(number, False, found) for number, found in enumerate(self.findings, 1)]
        return self.work.verify(outcomes, nothing)

    @property
    def outcome(self) -> str:
        """Outcome of the first worker's operation."""
        return self.findings[0].outcome


def prepare_cell(case: Case, folder: Path) -> Ran:
    """Return a cell that is ready for its workers."""
    work = open_work(case, folder, SALT, {})
    work.prepare(nothing)
    return Ran(case, folder, work)


def run(case: Case, folder: Path) -> Ran:
    """Let each worker of a cell do its work."""
    ran = prepare_cell(case, folder)
    for worker in range(1, case.concurrency + 1):
        work_as(ran, worker)
    return ran


def work_as(ran: Ran, worker: int) -> None:
    """Do one worker's work."""
    source = open_source(to_namespace(ran.case), ran.folder, worker, SALT, ran.work.shared)
    with closing(source):
        now = time.perf_counter_ns()
        window, run = Window(now, now, FOREVER_NS), closed_loop(source)
        ran.totals.append(timed_loop(source, window, None, [0], [0], run))
        ran.findings.append(source.findings())


# Keys.


KEYS_FAST = Settings(synchronous="off", pragmas=(("foreign_keys", "on"),))


def keys_case(schema: str, id_type: str, **fields: Any) -> Case:
    load = Picks(schema, id_type, users=30, picks=10, items=60)
    return Case(
        **{"workload": "keys", "concurrency": 2, "settings": KEYS_FAST, "spec": load, "seed": 3, **fields}
    )


# Cycles.


def cycles_case(
    settings: Settings | None = None, *, concurrency: int = 1, driver: str = "sqlite3", **cycling: Any
) -> Case:
    """Return a case of cycles that syncs as little as it can, unless its settings say so."""
    return Case(
        workload="cycles",
        driver=driver,
        concurrency=concurrency,
        duration_s=0,
        warmup_s=0,
        settings=settings or Settings(synchronous="off"),
        spec=Cycling(**{"cycles": 6, "rows": 3, **cycling}),
    )


def values(done: Measured) -> list[str]:
    """Return the values in the table, by id."""
    return [value for (value,) in done.rows("SELECT value FROM t1 ORDER BY id")]
