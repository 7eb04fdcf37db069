"""A host of a fleet: what its report says of it, without the report's bulk, since a fleet has many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256

from sqlstress.analysis.comparison import logarithms
from sqlstress.analysis.differences import Part, barriers
from sqlstress.analysis.durability import build_of
from sqlstress.analysis.group import Group, group_runs, rate_of
from sqlstress.analysis.wording import finite
from sqlstress.errors import UsageError
from sqlstress.experiment import face_of
from sqlstress.report import Report, Run
from sqlstress.report.case import Case
from sqlstress.report.results import Together

# A host's share of a load that several hosts put on one server: what its report says of each trial.


@dataclass(frozen=True, slots=True)
class Share:
    """One trial of a host, as a part of a common one."""

    together: Together
    """With whom, and when by the server's clock."""
    seconds: float
    """The length of its window."""
    rate: float
    """Its own transactions a second; 0 where it does not count."""
    why_not: str = ""
    """Why it does not count, in a clause; "" where it does."""


def shares(run: Run) -> Iterator[Share]:
    """Yield a host's shares in common trials of a case, those without a figure included."""
    wrong = "its data was wrong" if run.verdict.status == "failed" else ""
    for trial in run.trials:
        if trial.together:
            rate = finite(trial.tps) or 0.0
            why = (
                wrong or (trial.error or "").removesuffix(".") or ("" if rate > 0 else "it got nothing done")
            )
            yield Share(trial.together, trial.seconds, 0.0 if why else rate, why)


SYSTEMS = {"Darwin": "macOS"}
_PLAIN = Case()
Terms = tuple[tuple[str, str | None], ...]
"""What must be the same for figures to be compared: subject and what it is; None: it is not known."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One case on one host."""

    case: Case
    """What was asked, as every host was asked it: without its seed, and how long it was measured."""
    work: str
    """What its processes did, in a line."""
    terms: Terms
    """What another host's figure must have in common with this one to be compared with it."""
    rate: float | None
    """What it is compared by: of most experiments transactions a second; None where it has no figure."""
    logarithms: tuple[float, ...]
    """The natural logarithms of its trials' rates; none where one of them has no rate."""
    status: str
    """Its verdict: ok, failed, skipped or unknown."""
    wrong: str = ""
    """What was wrong with its data; "" where nothing was."""
    shares: tuple[Share, ...] = ()
    """Its trials that were a part of a load of several hosts; none where it loaded alone."""


@dataclass(frozen=True, slots=True)
class Host:
    """One host of a fleet."""

    name: str
    """What it is called: as the file of its report is."""
    created: str
    """When it was measured: ISO 8601, UTC."""
    facts: tuple[tuple[str, str], ...]
    """What its figures depend on, in words; "" where it is not known."""
    cores: int | None
    """Logical processors; None where it is not known."""
    sync_ns: tuple[int, ...]
    """What a sync costs there (median, in nanoseconds): when it began, and when it ended if that is known."""
    sync_call: str
    """The system call that syncs; "" where it is not known."""
    warnings: tuple[str, ...]
    """What a reader of its figures must know of it."""
    cases: tuple[Measured, ...]
    """What was measured there."""
    published: str | None
    """Who measured and published its figures; None: sqlstress measured them."""
    digest: str
    """The same of two reports that say the same, whatever their files look like."""

    def fact(self, subject: str) -> str:
        """Return what it is in a subject of FACTS; "" where that is not known."""
        return dict(self.facts).get(subject, "")


def host_of(name: str, report: Report) -> Host:
    """Return the host of a report. Raises UsageError for a report without cases that hosts share."""
    _refuse_apart(report)
    environment = report.environment
    costs = [cost for cost in (environment.sync, environment.sync_after) if cost]
    return Host(
        name,
        report.created,
        tuple((subject, told(report)) for subject, told in FACTS.items()),
        environment.host.cores,
        tuple(cost.overwrite_p50_ns for cost in costs if cost.overwrite_p50_ns > 0),
        environment.sync.primitive if environment.sync else "",
        tuple(warning.text for warning in environment.warnings if warning.serious),
        tuple(_measured(report)),
        report.published,
        _digest(report),
    )


def _refuse_apart(report: Report) -> None:
    if report.results:
        raise UsageError(
            f"it is a report of {next(iter(report.results))}, which has a verdict of its own and no rates"
        )
    if report.ab:
        raise UsageError("it is an A/B test, which has a verdict of its own")
    if report.limit:
        raise UsageError("it is a search for the highest rate, which has an answer of its own")
    if not report.runs:
        raise UsageError("nothing was measured in it")


def _measured(report: Report) -> Iterator[Measured]:
    for group in group_runs(report.runs):
        work = face_of(group.case).show().what(group)
        for run in group.runs:
            yield _case(report, group, run, work)


def _case(report: Report, group: Group, run: Run, work: str) -> Measured:
    part = Part("this host", report, group, (run,))
    terms = tuple((one.subject, one.values[0]) for one in barriers([part]))
    wrong = run.verdict.status == "failed"
    example = next(iter(run.verdict.counterexamples), "see its report") if wrong else ""
    return Measured(
        asked(run.case), work, terms, rate_of(run), tuple(logarithms(run)), run.verdict.status, example,
        tuple(shares(run)),
    )  # fmt: skip


def asked(case: Case) -> Case:
    """Return what was asked of every host alike: a seed, and how long it was measured, may differ."""
    return replace(
        face_of(case).alike.same_work(case),
        seed=0,
        repeat=_PLAIN.repeat,
        duration_s=_PLAIN.duration_s,
        warmup_s=_PLAIN.warmup_s,
        verify=_PLAIN.verify,
        max_failed=_PLAIN.max_failed,
    )


def _digest(report: Report) -> str:
    """Return what tells two measurements apart: when, where, and every trial's figures."""
    trials = [
        (repr(run.case), [(trial.index, trial.transactions, trial.tps) for trial in run.trials])
        for run in report.runs
    ]
    return sha256(repr((report.created, report.environment, trials)).encode(errors="replace")).hexdigest()


def _sqlite(report: Report) -> str:
    drivers = dict.fromkeys(run.case.driver for run in report.runs)
    builds = [build_of(driver, report.environment.builds) for driver in drivers]
    return ", ".join(dict.fromkeys(build.version for build in builds if build))


def _system(report: Report) -> str:
    system = report.environment.host.system
    return SYSTEMS.get(system, system)


FACTS: dict[str, Callable[[Report], str]] = {
    "system": _system,
    "architecture": lambda report: report.environment.host.machine,
    "cores": lambda report: str(report.environment.host.cores or ""),
    "processor": lambda report: report.environment.host.processor,
    "file system": lambda report: report.environment.file_system.kind,
    "SQLite": _sqlite,
    "call that syncs": lambda report: report.environment.sync.primitive if report.environment.sync else "",
    "Python": lambda report: report.environment.host.python,
    "sqlstress": lambda report: report.tool_version,
}
"""What hosts may differ in, and what it is of a report."""
