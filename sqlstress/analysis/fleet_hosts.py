"""Hosts of a fleet: what a report says of each, without its bulk, and what several of them did together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256

from sqlstress.analysis.comparison import logarithms
from sqlstress.analysis.differences import CPU_QUOTA, Part, barriers
from sqlstress.analysis.durability import build_of
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import group_runs, rate_of, reader_of
from sqlstress.analysis.wording import cut, duration, listing, place, quota
from sqlstress.errors import UsageError
from sqlstress.experiment import experiment_of, rate_units_of
from sqlstress.report import Report, Run
from sqlstress.report.case import Case
from sqlstress.report.results import Together
from sqlstress.statistics.units import NS_PER_S, finite

LONGEST_NAME = 40
Terms = tuple[tuple[str, str | None], ...]
"""What must be the same for figures to be compared: subject and what it is; None: it is not known."""


def short_name(host: str) -> str:
    """Return what a host is called in a sentence."""
    return cut(host, LONGEST_NAME)


@dataclass(frozen=True, slots=True)
class Share:
    """One trial of a host, as a part of a load that several hosts put on one server."""

    together: Together
    """With whom, and when by the server's clock."""
    seconds: float
    """The length of its window."""
    rate: float
    """Its own transactions a second; 0 where it does not count."""
    why_not: str = ""
    """Why it does not count, in a clause; "" where it does."""


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
    wrong: str
    """What was wrong with its data; "" where nothing was."""
    shares: tuple[Share, ...]
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
    if report.results:
        raise UsageError(
            f"it is a report of {next(iter(report.results))}, which has its own verdict and no rates"
        )
    if report.ab:
        raise UsageError("it is an A/B test, which has its own verdict")
    if report.limit:
        raise UsageError("it is a search for the highest rate, which has its own answer")
    if not report.runs:
        raise UsageError("it has no measurements")
    environment = report.environment
    costs = [cost for cost in (environment.sync, environment.sync_after) if cost]
    # What tells two measurements apart: when, where, and every trial's figures.
    trials = [
        (repr(run.case), [(trial.index, trial.transactions, trial.tps) for trial in run.trials])
        for run in report.runs
    ]
    told_apart = repr((report.created, environment, trials)).encode(errors="replace")
    return Host(
        name,
        report.created,
        tuple((subject, fact(report)) for subject, fact in FACTS.items()),
        environment.host.cores,
        tuple(cost.overwrite_p50_ns for cost in costs if cost.overwrite_p50_ns > 0),
        environment.sync.primitive if environment.sync else "",
        tuple(warning.text for warning in environment.warnings if warning.serious),
        tuple(_measured(report)),
        report.published,
        sha256(told_apart).hexdigest(),
    )


def _measured(report: Report) -> Iterator[Measured]:
    plain = Case()
    for group in group_runs(report.runs):
        work = reader_of(group.case).what(group)
        for run in group.runs:
            # A seed, and how long it was measured, may differ from host to host.
            asked = replace(
                experiment_of(run.case).work_key(run.case),
                seed=0,
                repeat=plain.repeat,
                duration_s=plain.duration_s,
                warmup_s=plain.warmup_s,
                verify=plain.verify,
                max_failed=plain.max_failed,
            )
            barred = barriers([Part("this host", report, group, (run,))])
            is_wrong = run.verdict.status == "failed"
            yield Measured(
                asked,
                work,
                # Hosts of a fleet may have different quotas, as they may have different processors.
                terms=tuple(
                    (barrier.subject, barrier.values[0]) for barrier in barred if barrier.subject != CPU_QUOTA
                ),
                rate=rate_of(run),
                logarithms=tuple(logarithms(run)),
                status=run.verdict.status,
                wrong=next(iter(run.verdict.counterexamples), "see its report") if is_wrong else "",
                shares=tuple(_shares(run, is_wrong)),
            )


def _shares(run: Run, is_wrong: bool) -> Iterator[Share]:
    """Yield a host's shares in common trials of a case, those without a figure included."""
    for trial in run.trials:
        if trial.together:
            rate = finite(trial.tps) or 0.0
            why = "its data was wrong" if is_wrong else (trial.error or "").removesuffix(".")
            why = why or ("" if rate > 0 else "it got nothing done")
            yield Share(trial.together, trial.seconds, 0.0 if why else rate, why)


def _system(report: Report) -> str:
    system = report.environment.host.system
    return "macOS" if system == "Darwin" else system


def _sqlite(report: Report) -> str:
    drivers = dict.fromkeys(run.case.driver for run in report.runs)
    builds = [build_of(driver, report.environment.builds) for driver in drivers]
    return ", ".join(dict.fromkeys(build.version for build in builds if build))


FACTS: dict[str, Callable[[Report], str]] = {
    "system": _system,
    "architecture": lambda report: report.environment.host.machine,
    "cores": lambda report: str(report.environment.host.cores or ""),
    "CPU quota": lambda report: quota(report.environment.host),
    "processor": lambda report: report.environment.host.processor,
    "file system": lambda report: report.environment.file_system.kind,
    "SQLite": _sqlite,
    "call that syncs": lambda report: report.environment.sync.primitive if report.environment.sync else "",
    "Python": lambda report: report.environment.host.python,
    "sqlstress": lambda report: report.tool_version,
}
"""What hosts may differ in, and what it is of a report."""


# Joint loads: what several hosts did together to one server, as a total over their common window.
#
# All figures of a fleet but these are hosts' own. The windows of all hosts open at one agreed instant of the
# server's clock. What the total is off by is what their windows may not have in common: the stretches that
# are not in all of them, and twice the error of the clocks, in which each host counts as at its own rate.


@dataclass(frozen=True, slots=True)
class Total:
    """One trial of all hosts that took part in it to its end."""

    step: int
    """Which trial of the common measurement it was."""
    shares: tuple[Share, ...]
    """Those that count, one of each host, by the hosts' names."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """Who is in it."""
        return tuple(share.together.host for share in self.shares)

    @property
    def rate(self) -> float:
        """Transactions a second of all of them together."""
        return sum(share.rate for share in self.shares)

    @property
    def seconds(self) -> float:
        """How long a host's window is."""
        return max(share.seconds for share in self.shares)

    @property
    def common_s(self) -> float:
        """For how long all their windows were open, by the server's clock; 0: never at once."""
        opens = max(share.together.opens_ns for share in self.shares)
        closes = min(share.together.closes_ns for share in self.shares)
        return max(0, closes - opens) / NS_PER_S

    @property
    def error_ns(self) -> int:
        """How exactly the clocks are known: the largest error of any host's window."""
        return max(share.together.error_ns for share in self.shares)

    @property
    def off_share(self) -> float:
        """By which share the total may be off, since the windows are not quite the same; 1: it is none."""
        surely_s = self.common_s - 2 * self.error_ns / NS_PER_S
        return min(1.0, max(0.0, 1 - surely_s / self.seconds)) if surely_s > 0 < self.seconds else 1.0


@dataclass(frozen=True, slots=True)
class Joint:
    """One case that several hosts measured together."""

    meeting: str
    """Which common measurement."""
    case: Case
    work: str
    """What the processes of each host did, in a line."""
    asked: tuple[str, ...]
    """Who was to take part."""
    totals: tuple[Total, ...]
    """Of the trials that the most hosts took part in to the end, with windows that were open at once."""
    without: Mapping[str, str] = field(default_factory=dict)
    """Who was to take part and is in no such total, and why, in a clause."""

    @property
    def hosts(self) -> int:
        """How many hosts are in a total."""
        return len(self.totals[0].hosts) if self.totals else 0

    @property
    def typical(self) -> Total | None:
        """The trial whose total is the (lower) median; None where there is no total."""
        ranked = sorted(self.totals, key=lambda total: total.rate)
        return ranked[(len(ranked) - 1) // 2] if ranked else None

    @property
    def lowest(self) -> float:
        """The lowest of the totals; 0 where there is none."""
        return min((total.rate for total in self.totals), default=0.0)

    @property
    def highest(self) -> float:
        """The highest of the totals; 0 where there is none."""
        return max((total.rate for total in self.totals), default=0.0)

    @property
    def server(self) -> str:
        """Where the server is, as it may be shown."""
        return str(self.case.server.address) if self.case.server and self.case.server.address else "a server"


def joint_loads(hosts: Iterable[Host]) -> tuple[Joint, ...]:
    """Return what hosts measured together, by the measurement, the layout and the number of processes."""
    found: dict[tuple[str, Case], dict[int, dict[str, Share]]] = {}
    works: dict[Case, str] = {}
    for host in hosts:
        for measured in host.cases:
            for share in measured.shares:
                works.setdefault(measured.case, measured.work)
                trials = found.setdefault((share.together.meeting, measured.case), {})
                trials.setdefault(share.together.step, {}).setdefault(share.together.host, share)
    order = sorted(found, key=lambda key: (key[0], key[1].buckets, key[1].concurrency))
    return tuple(_joint(meeting, case, works[case], found[meeting, case]) for meeting, case in order)


def _joint(meeting: str, case: Case, work: str, trials: Mapping[int, Mapping[str, Share]]) -> Joint:
    every = [share for by_host in trials.values() for share in by_host.values()]
    asked = tuple(sorted({name for share in every for name in share.together.asked}))
    totals = [
        total
        for step, by_host in sorted(trials.items())
        if (own := _that_met(by_host)) and (total := Total(step, own)).off_share < 1
    ]
    most = max((len(total.hosts) for total in totals), default=0)
    fullest = tuple(total for total in totals if len(total.hosts) == most)
    within = {name for total in fullest for name in total.hosts}
    without = {name: _why(name, every) for name in asked if name not in within}
    return Joint(meeting, case, work, asked, fullest, without)


def _that_met(by_host: Mapping[str, Share]) -> tuple[Share, ...]:
    """Return the shares that count of one trial: where some began apart from others, of the most hosts."""
    met: dict[tuple[str, ...], list[Share]] = {}
    for name, share in sorted(by_host.items(), key=lambda item: item[0]):
        if not share.why_not and name in share.together.began:
            met.setdefault(share.together.began, []).append(share)
    most: list[Share] = max(met.values(), key=len, default=[])
    return tuple(most)


def _why(name: str, every: Iterable[Share]) -> str:
    """Return why a host that was asked is in no total."""
    own = [share for share in every if share.together.host == name]
    if own:
        return next((share.why_not for share in own if share.why_not), "it began apart from the others")
    if any(name in share.together.began for share in every):
        return "it began with the others, and there is no trial of it"
    return "it was not ready when the others began"


def totals_of(joints: Iterable[Joint]) -> Iterator[Finding]:
    """Yield the highest total of each common measurement, marked as such."""
    by_meeting: dict[str, list[Joint]] = {}
    for joint in joints:
        by_meeting.setdefault(joint.meeting, []).append(joint)
    for own in by_meeting.values():
        best = max(own, key=lambda joint: joint.typical.rate if joint.typical else 0.0)
        total, hosts, several = best.typical, len(best.asked), len(best.totals) > 1
        if total is None:
            yield Finding("joint-none", hosts=hosts)
            continue
        yield Finding(
            "joint-total",
            took_part=best.hosts if best.hosts != hosts else None,
            hosts=hosts,
            server=best.server,
            where=place(best.case),
            rate=total.rate,
            unit=f"{rate_units_of(best.case)} per second",
            lowest=best.lowest if several else None,
            highest=best.highest if several else None,
            trials=len(best.totals) if several else None,
            off=total.off_share,
            common_s=total.common_s,
            window_s=total.seconds,
            clocks_ns=total.error_ns,
        )


def describe_clocks(hosts: Iterable[Host], meeting: str) -> str:
    """Return how far the hosts' clocks are from the server's: of many hosts the two ends."""
    found: dict[str, Together] = {}
    for host in hosts:
        for share in (share for case in host.cases for share in case.shares):
            if share.together.meeting == meeting:
                found.setdefault(share.together.host, share.together)
    ordered = sorted(found.values(), key=lambda each: each.clock_ns)
    shown = ordered if len(ordered) <= 4 else [ordered[0], ordered[-1]]
    which = "" if len(shown) == len(ordered) else f", at the ends of {len(ordered)} hosts"
    clocks = []
    for each in shown:
        side = "ahead" if each.clock_ns >= 0 else "behind"
        off, error = duration(abs(each.clock_ns)), duration(each.clock_error_ns)
        clocks.append(f"{short_name(each.host)} {off} {side} (±{error})")
    return f"Clocks, compared with the server's{which}: {listing(clocks)}."
