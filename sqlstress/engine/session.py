"""Set-up of a measurement: folder, file descriptors, description of the machine, stop signals."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlstress.engine import pool
from sqlstress.engine.folder import RunFolder
from sqlstress.engine.omissions import COSTS, is_omitted
from sqlstress.engine.pool import IdleWorkers
from sqlstress.engine.study import Observer
from sqlstress.engine.trial import TrialRunner
from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.experiment import experiment_of
from sqlstress.machine import fingerprint
from sqlstress.machine.sync_cost import BUDGET_NS
from sqlstress.report import Report
from sqlstress.report.case import Case
from sqlstress.system.interrupt import StopSignals
from sqlstress.system.processes import process_starter
from sqlstress.target import takes
from sqlstress.targets import run_services, target_of


@dataclass(frozen=True, slots=True)
class Bench:
    """Tools with which a study (a measurement in steps) measures: a report to fill and a runner of trials."""

    report: Report
    """Report without results: only time, command and environment."""
    runner: TrialRunner
    """Runner of trials in the session's folder. It stops on a signal and reports to the observer."""


class MeasuringSession:
    """Factory of benches (see Bench) for studies of `cases`. Each bench gets a new folder in `directory`."""

    def __init__(
        self, cases: tuple[Case, ...], directory: Path, keep: bool, command: tuple[str, ...]
    ) -> None:
        self.cases, self.directory, self.keep, self.command = cases, directory, keep, command
        self.kept_folder: Path | None = None
        self.stayed: tuple[Path, ...] = ()

    @contextmanager
    def opened(self, observer: Observer) -> Iterator[Bench]:
        """Yield a bench, whose runner raises Interrupted after a stop signal.

        Raises UsageError if `keep` is true and a case uses a server, other SqlstressErrors for an unusable
        `directory`.
        """
        if self.keep and any(case.server for case in self.cases):
            raise UsageError("--keep keeps files only; tables on a server are always removed. Leave it out.")
        with StopSignals() as signals:
            raise_descriptor_limit(max(map(needed_descriptors, self.cases)))
            with RunFolder(self.directory, self.keep) as folder, run_services(self.cases, folder.path):
                self.kept_folder = folder.path if self.keep else None
                drivers = dict.fromkeys(case.driver for case in self.cases)
                environment = fingerprint(
                    folder.path,
                    [build for name in drivers if (build := target_of(name).describe(name))],
                    [case.settings for case in self.cases if takes(case.driver, "journal-mode")],
                    max(case.concurrency for case in self.cases),
                    [*dict.fromkeys(filter(None, map(not_native, self.cases)))],
                    sync_budget_ns=0 if is_omitted(COSTS) else BUDGET_NS,
                    waiting=[] if is_omitted(COSTS) else waiting_drivers(self.cases),
                )
                created = datetime.now(UTC).isoformat(timespec="seconds")
                report = Report(created, self.command, environment)
                with process_starter(pool.modules(self.cases)) as starter, IdleWorkers() as crew:
                    runner = TrialRunner(
                        folder.path, self.keep, signals, observer, self.cases[0].seed, starter, crew
                    )
                    yield Bench(report, runner)
            self.stayed = folder.stayed


def not_native(case: Case) -> str | None:
    """Return the reason why a case must use the loop in Python instead of C, or None."""
    if experiment_of(case).loop_of(case) != "python":
        return None
    return target_of(case.driver).lacks_native(case.driver)


def waiting_drivers(cases: Sequence[Case]) -> list[str]:
    """Return the drivers of all cases in which workers of sqlstress connect with a busy timeout."""
    waiting = (
        case for case in cases if experiment_of(case).opens_database and case.settings.busy_timeout_ms > 0
    )
    return list(dict.fromkeys(case.driver for case in waiting))


DESCRIPTORS_PER_WORKER = 3
"""Number of the parent's file descriptors per worker: our pipe, and two of multiprocessing."""
SPARE_DESCRIPTORS = 64


def needed_descriptors(case: Case) -> int:
    """Return the number of file descriptors that a process of this case, parent or worker, may need."""
    data = target_of(case.driver).DESCRIPTORS * case.buckets
    processes = case.concurrency + len(experiment_of(case).companions())
    return data + DESCRIPTORS_PER_WORKER * processes + SPARE_DESCRIPTORS


def raise_descriptor_limit(count: int) -> None:
    """Allow `count` open files in this process and its children. Raises EnvironmentFailure."""
    if sys.platform == "win32":
        return  # Windows does not limit handles.
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= count:
        return
    if hard != resource.RLIM_INFINITY and hard < count:
        raise EnvironmentFailure(
            f"each process needs {count} open files, but the limit is {hard}. Lower --buckets or "
            f"--concurrency, or raise the limit (ulimit -Hn {count})."
        )
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    except (OSError, ValueError) as error:
        raise EnvironmentFailure(
            f"each process needs {count} open files, and raising the limit of {soft} failed: {error}."
        ) from error
