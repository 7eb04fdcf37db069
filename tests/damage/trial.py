"""A trial of real processes whose files have not been verified; they can be changed and restored."""

import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from sqlstress.engine.pool import Pool, WorkerExit
from sqlstress.engine.protocols import Work
from sqlstress.engine.summary import outcomes
from sqlstress.engine.trial import plan_window
from sqlstress.experiment import experiment_of
from sqlstress.experiments.crash.database import CrashDatabase
from sqlstress.experiments.crash.proof import AcknowledgedRecords
from sqlstress.experiments.crash.study import Victims
from sqlstress.report import Verdict
from sqlstress.report.case import Case
from sqlstress.statistics.series import Series
from sqlstress.targets import open_place
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.place import SqlitePlace

ANSWER_S = 0.05
"""Seconds that the workers may take to notice that the window opens."""
READY_S = 60.0
TRANSACTIONS = 60
"""Acknowledged transactions after which writers are killed."""


class NothingToChange(Exception):
    """The files of this trial contain nothing that could be changed in this way."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the files of a trial."""

    text: str
    """Description of the change."""
    names: tuple[tuple[str, ...], ...]
    """Names for counter-examples: at least one word of each tuple must appear."""

    def is_named(self, counterexamples: Iterable[str]) -> bool:
        """Return whether counter-examples name everything that was changed."""
        told = "\n".join(counterexamples)
        words = (rf"(?<!\w)(?:{'|'.join(map(re.escape, its))})(?!\w)" for its in self.names)
        return all(re.search(word, told, re.IGNORECASE) for word in words)


def changed(how: str, *names: str) -> Change:
    """Return a change all of whose names must appear."""
    return Change(f"{' and '.join(names)} {how}", tuple((name,) for name in names))


@dataclass
class Trial:
    """The remains of a trial: its files, and the acknowledged work of its workers."""

    case: Case
    folder: Path
    salt: int
    shared: tuple[Any, ...]
    """Memory that the workers shared with the parent's half of the workload."""
    verdict: Callable[[str], Verdict]
    """Verifies the present files, at one of the levels of --verify."""
    images: dict[Path, bytes] = field(default_factory=dict)
    """Contents of the files after the workers' end, with their WALs checkpointed."""
    sites: dict[int, list[Any]] = field(default_factory=dict)
    """Bytes that carry meaning, by bucket; computed on first use."""

    def __post_init__(self) -> None:
        for path in self.paths:
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self.images[path] = path.read_bytes()

    @property
    def paths(self) -> list[Path]:
        """The database files, by bucket."""
        return files.paths(self.case, self.folder)

    def restore(self) -> None:
        """Restore the files to their state after the workers' end."""
        files.remove(files.paths(self.case, self.folder))
        for path, image in self.images.items():
            path.write_bytes(image)

    @contextmanager
    def _connected(self, bucket: int) -> Iterator[sqlite3.Connection]:
        """Yield a connection outside of the trial, whose changes are committed at the end."""
        with closing(sqlite3.connect(self.paths[bucket])) as connection, connection:
            yield connection

    def rows(self, sql: str, *params: object, bucket: int = 0) -> list[Any]:
        """Return the rows of a query."""
        with self._connected(bucket) as connection:
            return connection.execute(sql, params).fetchall()

    def execute(self, sql: str, *params: object, bucket: int = 0) -> None:
        """Change exactly one row."""
        with self._connected(bucket) as connection:
            count = connection.execute(sql, params).rowcount
        if count != 1:
            raise AssertionError(f"{count} rows were changed by {sql}")


Mutation = Callable[[Trial, Random], Change]
"""A function that changes the files of a trial. Raises NothingToChange."""
Words = Callable[[Trial, str, tuple[Any, ...]], list[str]]
"""A function that returns the names of a table's row that a counter-example may use."""


@dataclass
class Worked:
    """Both halves of a trial after its work."""

    work: Work
    ended: Sequence[WorkerExit]
    """Result of each worker."""
    seen: Sequence[Series]
    """Series that the workers' companions recorded."""
    problem: str | None
    """Failure of the companions, or None."""


def work_on(
    case: Case,
    folder: Path,
    salt: int,
    carry: dict[Any, Any],
    during: Callable[[Pool], None] = lambda pool: None,
) -> Worked:
    """Let a case's workers do their work; `during` may interfere, and delays their results.

    Raises RuntimeError if a worker could not start.
    """
    place = open_place(case, folder)
    work = experiment_of(case).open_work(case, place, salt, carry)
    work.prepare(nothing)
    with Pool(case, place, salt, work.shared, work.companions) as pool:
        pool.start(nothing)
        pool.call()
        if failed := pool.wait_ready(READY_S, nothing):
            raise RuntimeError(str(failed))
        work.release()
        pool.go(plan_window(case, time.perf_counter_ns(), ANSWER_S))
        during(pool)
        ended = pool.gather(READY_S, nothing)
        seen, problem = pool.dismiss(READY_S, nothing)
    return Worked(work, ended, seen, problem)


def measure(case: Case, folder: Path, salt: int, trials: int) -> Trial:
    """Let a case's workers do their work, in several trials over the same files; the last is to be verified.

    Raises RuntimeError if a worker could not start, or an earlier trial failed.
    """
    carry: dict[Any, Any] = {}
    for number in range(trials):
        worked = work_on(case, folder, salt + number, carry)
        work, ended = worked.work, outcomes(worked.ended)
        # A sweep's verdict also stores the state that the next trial must find.
        if number + 1 < trials and work.verify(ended, nothing).status != "ok":
            raise RuntimeError("an earlier trial over the same files failed")
    before = {key: dict(value) for key, value in carry.items() if isinstance(value, dict)}

    def verdict(verify: str) -> Verdict:
        for key, rows in before.items():
            carry[key].clear()
            carry[key].update(rows)
        vars(work)["case"] = replace(case, verify=verify)
        return work.verify(ended, nothing)

    return Trial(case, folder, salt + trials - 1, work.shared, verdict)


def measure_killed(case: Case, folder: Path, salt: int) -> Trial:
    """Kill the writers of a crash test during their work."""
    place = SqlitePlace(case, folder)
    database = CrashDatabase(place)
    database.create()
    with Victims(case, place, before=0) as victims:
        victims.start(nothing)
        victims.call()
        if failed := victims.wait_ready(READY_S, nothing):
            raise RuntimeError(str(failed))
        victims.begin()
        victims.await_more(TRANSACTIONS, READY_S, nothing)
        victims.kill([*victims.alive])
        done = {number: ledger.acknowledged() for number, ledger in victims.ledgers.items()}
        told = {
            number: AcknowledgedRecords(done[number], done[number] + ledger.under_way())
            for number, ledger in victims.ledgers.items()
        }

    def verdict(_verify: str) -> Verdict:
        try:
            return database.judge(database.examine(), told)
        finally:
            database.release()

    return Trial(case, folder, salt, (told,), verdict)


def nothing() -> None:
    """Do nothing."""
