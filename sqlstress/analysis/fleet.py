"""A fleet: what the reports of many hosts say of them, as data.

Hosts are never pooled, but for the totals of those that loaded one server together.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import median_low
from typing import Any

from sqlstress.analysis.comparison import ALPHA, rate_verdict
from sqlstress.analysis.differences import FLAT
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.fleet_hosts import (
    FACTS,
    Host,
    Joint,
    Measured,
    Terms,
    joint_loads,
    short_name,
    totals_of,
)
from sqlstress.analysis.group import EQUAL as NEAR
from sqlstress.analysis.group import ERROR
from sqlstress.analysis.wording import listing, place
from sqlstress.experiment import experiment_of, rate_units_of
from sqlstress.report.case import Case
from sqlstress.statistics.compare import DIFFERENT, EQUAL, TOO_FEW, Ratio, needed, trend, unpaired
from sqlstress.statistics.units import plural

# Tables of a fleet: a row for each case, and in it the hosts whose figures can be compared.


@dataclass(frozen=True, slots=True)
class Figure:
    """What one host reached in a case."""

    host: Host
    measured: Measured

    @property
    def rate(self) -> float:
        """The median of its own trials, above 0."""
        return self.measured.rate or 0.0


@dataclass(frozen=True, slots=True)
class Row:
    """One case, on two hosts or more."""

    case: Case
    work: str
    """What its processes did, in a line."""
    comparable: tuple[Figure, ...]
    """Those hosts whose figures can be compared, the highest first: of several kinds, the largest."""
    apart: tuple[Figure, ...]
    """Those whose figures can't be compared with these."""
    without: tuple[Figure, ...]
    """Those without a figure: it was not measured, or its data was wrong."""

    @property
    def place(self) -> str:
        """Which case it is, in words."""
        return place(self.case)

    @property
    def terms(self) -> Terms:
        """What the comparable ones have in common."""
        return self.comparable[0].measured.terms if self.comparable else ()

    @property
    def best(self) -> Figure:
        """The host with the highest figure."""
        return self.comparable[0]

    @property
    def median(self) -> Figure:
        """The host in the middle: of an even number the lower one of the two."""
        return self.comparable[len(self.comparable) // 2]

    @property
    def worst(self) -> Figure:
        """The host with the lowest figure."""
        return self.comparable[-1]

    @property
    def pairs(self) -> int:
        """How many pairs of hosts can be compared."""
        count = len(self.comparable)
        return count * (count - 1) // 2

    def figures(self) -> Iterator[Figure]:
        """Yield every figure, those that can't be compared last."""
        yield from (*self.comparable, *self.apart)

    def why_apart(self, figure: Figure) -> tuple[Finding, ...]:
        """Return why a figure can't be compared with the others: in which terms it differs."""
        own, usual = figure.measured.terms, dict(self.terms)
        if not usual:
            return tuple(Finding("term-unknown", subject=subject) for subject, value in own if value is None)
        return tuple(
            Finding("term-differs", subject=subject, value=value, usual=usual.get(subject))
            for subject, value in own
            if value is None or value != usual.get(subject)
        )


Table = tuple[Row, ...]
"""Rows of the same work, which differ in what their experiment varies."""


def tables(hosts: Sequence[Host]) -> tuple[Table, ...]:
    """Return what hosts have in common, in the order in which the first of them has it."""
    by_case: dict[Case, dict[str, Figure]] = {}
    for host in hosts:
        for measured in host.cases:  # of a case that a plan holds twice, the first one stands
            by_case.setdefault(measured.case, {}).setdefault(host.digest, Figure(host, measured))
    by_table: dict[Hashable, list[Row]] = {}
    for case, figures in by_case.items():
        if len(figures) > 1:
            key = experiment_of(case).table(), experiment_of(case).table_key(case)
            by_table.setdefault(key, []).append(_row(case, [*figures.values()]))

    def order(row: Row) -> tuple[int, int]:
        sweeps = experiment_of(row.case).sweeps
        return (row.case.buckets, row.case.concurrency) if sweeps else (0, 0)

    return tuple(tuple(sorted(rows, key=order)) for rows in by_table.values())


def _row(case: Case, figures: Sequence[Figure]) -> Row:
    known = sorted((figure for figure in figures if figure.measured.rate), key=lambda figure: -figure.rate)
    # The most that have all terms in common, each of which is known.
    kinds: dict[Terms, list[Figure]] = {}
    for figure in figures:
        terms = figure.measured.terms
        if figure.measured.rate and all(value is not None for _, value in terms):
            kinds.setdefault(terms, []).append(figure)
    usual = max(kinds, key=lambda terms: len(kinds[terms]), default=None)
    return Row(
        case,
        figures[0].measured.work,
        comparable=tuple(figure for figure in known if figure.measured.terms == usual),
        apart=tuple(figure for figure in known if figure.measured.terms != usual),
        without=tuple(figure for figure in figures if not figure.measured.rate),
    )


# Gathering: hosts become a fleet, each report counted once.


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A host, or a file, of which there is no figure."""

    name: str
    why: str
    """In a clause, without a full stop."""
    is_failure: bool = True
    """Whether something went wrong; else it is no report of what a fleet shows."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """Hosts, and what they have in common."""

    hosts: tuple[Host, ...]
    """In the order of their names; each one once."""
    tables: tuple[Table, ...]
    """What two of them or more were asked."""
    twice: tuple[tuple[str, str], ...]
    """Reports that another one repeats: the name that was left out, and the one that is shown."""
    left_out: tuple[LeftOut, ...]
    """What there is no figure of, and why."""
    remarks: tuple[str, ...] = ()
    """What else is to be known of how the reports came here, a sentence each."""

    @property
    def alpha(self) -> float:
        """How often an interval misses its ratio: so seldom that all sentences hold together.

        Best, median and worst are chosen by their figures, so every pair of hosts counts.
        """
        return ALPHA / max(1, sum(row.pairs for row in self.main_rows()))

    def rows(self) -> Iterator[Row]:
        """Yield the rows of all tables."""
        return chain.from_iterable(self.tables)

    def main_rows(self) -> tuple[Row, ...]:
        """Return the rows of which sentences are made: of each layout the most processes.

        In experiments that sweep nothing every row stands for itself.
        """
        found: dict[Hashable, Row] = {}
        for number, table in enumerate(self.tables):
            for row in table:
                sweeps = experiment_of(row.case).sweeps
                found[number, (row.case.buckets, row.case.arrivals) if sweeps else row.case] = row
        return tuple(row for row in found.values() if len(row.comparable) > 1)

    def joint(self) -> tuple[Joint, ...]:
        """Return what hosts measured together."""
        return joint_loads(self.hosts)

    def alone(self) -> int:
        """Return how many cases only one host has."""
        shared = {row.case for row in self.rows()}
        return len({measured.case for host in self.hosts for measured in host.cases} - shared)


def gathered(hosts: Iterable[Host], left_out: Iterable[LeftOut] = (), remarks: Iterable[str] = ()) -> Fleet:
    """Return the fleet of hosts; of reports that say the same the first one stands."""
    first: dict[str, Host] = {}
    twice = []
    for host in hosts:
        if host.digest in first:
            twice.append((host.name, first[host.digest].name))
        else:
            first[host.digest] = host
    own = tuple(first.values())
    return Fleet(own, tables(own), tuple(twice), tuple(left_out), tuple(remarks))


# In what hosts differ, as facts: what most of them are, and which are otherwise.


@dataclass(frozen=True, slots=True)
class Spread:
    """A subject in which hosts differ."""

    subject: str
    values: tuple[tuple[str, tuple[Host, ...]], ...]
    """What it is, and on which hosts, the most frequent first."""
    usual: str | None
    """What it is on more than half of the hosts; None where nothing is."""


def spreads(hosts: Sequence[Host]) -> Iterator[Spread]:
    """Yield the subjects in which hosts differ, as far as they are known."""
    for subject in FACTS:
        own: dict[str, list[Host]] = {}
        for host in hosts:
            if value := host.fact(subject):
                own.setdefault(value, []).append(host)
        values = sorted(((value, tuple(of)) for value, of in own.items()), key=lambda item: -len(item[1]))
        if len(values) > 1:
            first, of_first = values[0]
            yield Spread(subject, tuple(values), first if 2 * len(of_first) > len(hosts) else None)


def differing_facts(fleet: Fleet) -> Iterator[str]:
    """Yield in what the hosts differ, a sentence for each subject."""
    for spread in spreads(fleet.hosts):
        shown = []
        for value, hosts in spread.values[:8]:
            most = 2 * len(hosts) > len(fleet.hosts) and len(hosts) > 1
            where = f"{len(hosts)} hosts" if most else listing([short_name(host.name) for host in hosts])
            shown.append(f"{value} on {where}")
        if (more := len(spread.values) - 8) > 0:
            shown.append(plural(more, "other value"))
        yield f"{spread.subject[:1].upper()}{spread.subject[1:]}: {'; '.join(shown)}."


# Conclusions: what the reports of a fleet say, each against the noise of its trials.


MOST_EXPLAINED = 8


def conclude(fleet: Fleet) -> Iterator[Finding]:
    """Yield what can be said of the hosts: wrong data first."""
    for host in fleet.hosts:
        if wrong := [measured.wrong for measured in host.cases if measured.wrong]:
            name = short_name(host.name)
            yield Finding("host-wrong-data", host=name, cases=len(wrong), example=wrong[0])
    yield from totals_of(fleet.joint())
    unlike: dict[str, Host] = {}
    for row in fleet.main_rows():
        yield _range(fleet, row)
        yield from _from_the_median(fleet, row, unlike)
    yield from _explained(fleet, list(unlike.values())[:MOST_EXPLAINED])
    apart: dict[tuple[Finding, ...], dict[str, Host]] = {}
    for row in fleet.rows():
        for figure in row.apart:
            apart.setdefault(row.why_apart(figure), {})[figure.host.digest] = figure.host
    for reasons, hosts in apart.items():  # the same of several cases once
        names = tuple(short_name(host.name) for host in hosts.values())
        yield Finding("hosts-not-comparable", hosts=names, reasons=reasons)
    for row in fleet.main_rows()[:1]:
        # Whether hosts whose sync costs less reached more; a server's disk is not its hosts'.
        points = [(figure.host.sync_ns[0], figure.rate) for figure in row.comparable if figure.host.sync_ns]
        if len(points) > 2 and not row.case.server:
            found = trend(points)
            code = "cheaper-sync-more" if found.tau < 0 else "dearer-sync-more"
            code = code if found.chance <= ERROR else "sync-unclear"
            yield Finding(code, hosts=len(points), where=row.place, tau=found.tau)


def compared(base: Figure, other: Figure, alpha: float) -> Ratio | None:
    """Return how a host's figure compares with another's, from the trials of each."""
    return unpaired(base.measured.logarithms, other.measured.logarithms, 1 - alpha)


def _range(fleet: Fleet, row: Row) -> Finding:
    """Return how the best host compares with the worst."""
    found = compared(row.worst, row.best, fleet.alpha)
    facts: dict[str, Any] = {
        "where": row.place,
        "best": short_name(row.best.host.name),
        "worst": short_name(row.worst.host.name),
        "most": row.best.rate,
        "least": row.worst.rate,
        "unit": f"{rate_units_of(row.case)} per second",
        "low": found.low if found and found.pairs else None,
        "high": found.high if found and found.pairs else None,
    }
    verdict = rate_verdict(found)
    if found and verdict == DIFFERENT:
        return Finding("hosts-differ", **facts, ratio=found.estimate)
    if verdict == EQUAL:
        return Finding("hosts-equal", **facts, hosts=len(row.comparable))
    if verdict == TOO_FEW:
        return Finding("hosts-unclear", **facts, repeat=needed(fleet.alpha / 2))
    return Finding("hosts-unclear", **facts, longer=True)


def _from_the_median(fleet: Fleet, row: Row, unlike: dict[str, Host]) -> Iterator[Finding]:
    """Yield which hosts are beyond doubt unlike the one in the middle, and remember the hosts."""
    if len(row.comparable) < 3:
        return
    median = row.median
    sides: dict[str, list[Finding]] = {"hosts-slower": [], "hosts-faster": []}
    for figure in row.comparable:
        found = compared(median, figure, fleet.alpha) if figure is not median else None
        if found and rate_verdict(found) == DIFFERENT and not 1 - NEAR < found.estimate < 1 / (1 - NEAR):
            side = sides["hosts-slower" if found.estimate < 1 else "hosts-faster"]
            side.append(Finding("host-times", host=short_name(figure.host.name), times=found.estimate))
            unlike[figure.host.digest] = figure.host
    for code, hosts in sides.items():
        if hosts:
            name = short_name(median.host.name)
            yield Finding(code, median=name, where=row.place, hosts=tuple(hosts))


def _explained(fleet: Fleet, hosts: Sequence[Host]) -> Iterator[Finding]:
    """Yield in what hosts differ from most whose figures do; that is no proof of what it comes from."""
    differ = list(spreads(fleet.hosts))
    known = {host.sync_ns[0]: host for host in fleet.hosts if host.sync_ns}
    costs = [host.sync_ns[0] for host in fleet.hosts if host.sync_ns]
    middle = known[median_low(costs)] if len(costs) > 2 else None
    for host in hosts:
        facts = []
        if middle and host.sync_ns:
            # Measured when each began and when it ended: all of one must lie beyond all of the other.
            own, usual = host.sync_ns, middle.sync_ns
            if min(own) > FLAT * max(usual) or FLAT * max(own) < min(usual):
                facts.append(Finding("sync-unlike", own_ns=own[0], usual_ns=usual[0]))
        for spread in differ:
            value = host.fact(spread.subject)
            if spread.usual is not None and value and value != spread.usual:
                facts.append(Finding("fact-unlike", subject=spread.subject, value=value, usual=spread.usual))
        if facts:
            yield Finding("host-unlike", host=short_name(host.name), facts=tuple(facts))
        else:
            yield Finding("host-unlike-unknown", host=short_name(host.name))
