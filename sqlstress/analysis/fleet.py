"""A fleet: what the reports of many hosts say of them, as data.

Hosts are never pooled, but for the totals of those that loaded one server together.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from statistics import NormalDist, median_low
from typing import Any

from sqlstress.analysis.comparison import ALPHA, said_of
from sqlstress.analysis.differences import FLAT
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.fleet_hosts import FACTS, Host, Measured, Terms, host_of
from sqlstress.analysis.group import EQUAL as NEAR
from sqlstress.analysis.group import ERROR
from sqlstress.analysis.joint_load import Joint, Total, joint_loads, totals_told
from sqlstress.analysis.wording import listing, place, plural
from sqlstress.experiment import face_of
from sqlstress.report.case import Case
from sqlstress.statistics.compare import DIFFERENT, EQUAL, TOO_FEW, Ratio, needed, unpaired

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
        own, usual = dict(figure.measured.terms), dict(self.terms)
        if not usual:
            unknown = (subject for subject, value in own.items() if value is None)
            return tuple(Finding("term-unknown", subject=subject) for subject in unknown)
        return tuple(
            Finding("term-differs", subject=subject, value=value, usual=usual.get(subject))
            for subject, value in own.items()
            if value is None or value != usual.get(subject)
        )


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of the same work, which differ in what their experiment varies."""

    rows: tuple[Row, ...]

    def told(self) -> tuple[Row, ...]:
        """Return the rows of which sentences are made: of each layout the most processes.

        In experiments that sweep nothing every row stands for itself.
        """
        found: dict[Hashable, Row] = {}
        for number, row in enumerate(self.rows):
            sweeps = face_of(row.case).behaviour.sweeps
            found[(row.case.buckets, row.case.arrivals) if sweeps else number] = row
        return tuple(row for row in found.values() if len(row.comparable) > 1)


def tables(hosts: Sequence[Host]) -> tuple[Table, ...]:
    """Return what hosts have in common, in the order in which the first of them has it."""
    by_case: dict[Case, list[Figure]] = {}
    for host in hosts:
        own: set[Case] = set()
        for measured in host.cases:
            if measured.case not in own:  # of a case that a plan holds twice, the first one stands
                own.add(measured.case)
                by_case.setdefault(measured.case, []).append(Figure(host, measured))
    by_table: dict[Hashable, list[Row]] = {}
    for case, figures in by_case.items():
        if len(figures) > 1:
            key = face_of(case).tables, face_of(case).alike.one_table(case)
            by_table.setdefault(key, []).append(_row(case, figures))
    return tuple(Table(tuple(sorted(rows, key=_order))) for rows in by_table.values())


def _order(row: Row) -> tuple[int, int]:
    sweeps = face_of(row.case).behaviour.sweeps
    return (row.case.buckets, row.case.concurrency) if sweeps else (0, 0)


def _row(case: Case, figures: Sequence[Figure]) -> Row:
    known = [one for one in figures if one.measured.rate]
    without = tuple(one for one in figures if not one.measured.rate)
    alike = _most_alike(known)
    comparable = sorted(alike, key=lambda one: -one.rate)
    chosen = {id(one) for one in alike}  # a thousand figures, each held against each, would take seconds
    apart = sorted((one for one in known if id(one) not in chosen), key=lambda one: -one.rate)
    return Row(case, figures[0].measured.work, tuple(comparable), tuple(apart), without)


def _most_alike(figures: Iterable[Figure]) -> list[Figure]:
    """Return the most figures that have all terms in common, each of which is known."""
    kinds: dict[Terms, list[Figure]] = {}
    for one in figures:
        terms = one.measured.terms
        if all(value is not None for _, value in terms):
            kinds.setdefault(terms, []).append(one)
    return max(kinds.values(), key=len, default=[])


def compared(base: Figure, other: Figure, alpha: float) -> Ratio | None:
    """Return how a host's figure compares with another's, from the trials of each."""
    return unpaired(base.measured.logarithms, other.measured.logarithms, 1 - alpha)


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
        return ALPHA / max(1, sum(row.pairs for row in self.told()))

    def told(self) -> tuple[Row, ...]:
        """Return the rows of which sentences are made."""
        return tuple(row for table in self.tables for row in table.told())

    def joint(self) -> tuple[Joint, ...]:
        """Return what hosts measured together."""
        return joint_loads(self.hosts)

    def alone(self) -> int:
        """Return how many cases only one host has."""
        shared = {row.case for table in self.tables for row in table.rows}
        return len({one.case for host in self.hosts for one in host.cases} - shared)


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
    hosts: int
    """How many hosts there are."""

    @property
    def usual(self) -> str | None:
        """What it is on more than half of the hosts; None where nothing is."""
        value, own = self.values[0]
        return value if 2 * len(own) > self.hosts else None


def spreads(hosts: Sequence[Host]) -> tuple[Spread, ...]:
    """Return the subjects in which hosts differ, as far as they are known."""
    return tuple(one for subject in FACTS if len((one := _spread(subject, hosts)).values) > 1)


def _spread(subject: str, hosts: Sequence[Host]) -> Spread:
    known = [(host, value) for host in hosts if (value := host.fact(subject))]
    counts = Counter(value for _, value in known)
    own = [(value, tuple(host for host, told in known if told == value)) for value, _ in counts.most_common()]
    return Spread(subject, tuple(own), len(hosts))


def usual_sync(hosts: Sequence[Host]) -> Host | None:
    """Return the host whose sync's cost is in the middle; None where fewer than three are known."""
    known = {host.sync_ns[0]: host for host in hosts if host.sync_ns}
    costs = [host.sync_ns[0] for host in hosts if host.sync_ns]
    return known[median_low(costs)] if len(costs) > 2 else None


def sync_differs(host: Host, other: Host) -> bool:
    """Say whether a sync costs two hosts more or less by a factor that one host does not show by itself.

    Each has it measured when it began and when it ended: all of one must lie beyond all of the other.
    """
    if not host.sync_ns or not other.sync_ns:
        return False
    return min(host.sync_ns) > FLAT * max(other.sync_ns) or FLAT * max(host.sync_ns) < min(other.sync_ns)


def unlike(host: Host, hosts: Sequence[Host], found: Sequence[Spread]) -> Iterator[Finding]:
    """Yield in what a host differs from most."""
    middle = usual_sync(hosts)
    if middle and middle is not host and sync_differs(host, middle):
        yield Finding("sync-unlike", own_ns=host.sync_ns[0], usual_ns=middle.sync_ns[0])
    for spread in found:
        value = host.fact(spread.subject)
        if spread.usual is not None and value and value != spread.usual:
            yield Finding("fact-unlike", subject=spread.subject, value=value, usual=spread.usual)


# Whether one figure falls or rises with another over hosts: Kendall's tau, and its test.
#
# Exact up to EXACT hosts, by counting the orders; of more by the normal approximation. A pair that ties in
# either figure counts against what is to be shown.
#
# Source: Hollander, Wolfe and Chicken, "Nonparametric Statistical Methods", chapter 8.


EXACT = 40


@dataclass(frozen=True, slots=True)
class Trend:
    """How two figures go together."""

    tau: float
    """-1 to 1: the share of pairs of hosts in the same order, less that in the opposite one."""
    chance: float
    """How likely so much is, either way, where the figures have nothing to do with each other."""

    @property
    def falls(self) -> bool:
        """Whether one falls as the other rises."""
        return self.tau < 0

    @property
    def is_shown(self) -> bool:
        """Whether it is more than chance."""
        return self.chance <= ERROR


def trend(points: Sequence[tuple[float, float]]) -> Trend:
    """Return how the second figure goes with the first, over two points or more."""
    signs = [_sign(x - a) * _sign(y - b) for (a, b), (x, y) in combinations(points, 2)]
    pairs, score = len(signs), sum(signs)
    # Ties take away from the score, so that they never help.
    shown = max(0, abs(score) - signs.count(0))
    return Trend(score / pairs, min(1.0, 2 * _tail(len(points), shown)))


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _tail(count: int, score: int) -> float:
    """Return how likely a score of so much or more is, of figures in any order."""
    pairs = count * (count - 1) // 2
    if count > EXACT:
        deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
        return 1 - NormalDist().cdf((score - 1) / deviation)
    discordant = (pairs - score) // 2
    return sum(_orders(count)[: discordant + 1]) / math.factorial(count)


@cache
def _orders(count: int) -> tuple[int, ...]:
    """Return how many orders of so many things have 0, 1, 2, ... pairs in the wrong one."""
    if count < 2:
        return (1,)
    before = _orders(count - 1)
    size = len(before) + count - 1
    return tuple(sum(before[max(0, place - count + 1) : place + 1]) for place in range(size))


# Conclusions: what the reports of a fleet say, each against the noise of its trials.


_LONGEST = 40


def conclude(fleet: Fleet) -> Iterator[Finding]:
    """Yield what can be said of the hosts: wrong data first."""
    yield from _wrong(fleet)
    yield from totals_told(fleet)
    found = spreads(fleet.hosts)
    slow: dict[str, Host] = {}
    for row in fleet.told():
        yield _range(fleet, row)
        yield from _from_the_median(fleet, row, slow)
    yield from _explained(fleet, slow.values(), found)
    yield from _apart(fleet)
    # A server's disk is not its hosts'.
    own_disk = [row for row in fleet.told()[:1] if not row.case.server]
    yield from (one for row in own_disk if (one := _with_sync(row)))


def name(host: Host) -> str:
    """Return what a host is called in a sentence."""
    return host.name if len(host.name) <= _LONGEST else f"{host.name[: _LONGEST - 1]}…"


def names(hosts: Sequence[Host]) -> str:
    """Return several hosts' names; of many the first ones."""
    return listing([name(host) for host in hosts])


def _wrong(fleet: Fleet) -> Iterator[Finding]:
    for host in fleet.hosts:
        wrong = [one for one in host.cases if one.wrong]
        if wrong:
            yield Finding("host-wrong-data", host=name(host), cases=len(wrong), example=wrong[0].wrong)


def _range(fleet: Fleet, row: Row) -> Finding:
    """Return how the best host compares with the worst."""
    found = compared(row.worst, row.best, fleet.alpha)
    facts: dict[str, Any] = {
        "where": row.place,
        "best": name(row.best.host),
        "worst": name(row.worst.host),
        "most": row.best.rate,
        "least": row.worst.rate,
        "unit": _unit(row),
        "low": found.low if found and found.pairs else None,
        "high": found.high if found and found.pairs else None,
    }
    verdict = said_of(found)
    if found and verdict == DIFFERENT:
        return Finding("hosts-differ", **facts, ratio=found.estimate)
    if verdict == EQUAL:
        return Finding("hosts-equal", **facts, hosts=len(row.comparable))
    if verdict == TOO_FEW:
        return Finding("hosts-unclear", **facts, repeat=needed(fleet.alpha / 2))
    return Finding("hosts-unclear", **facts, longer=True)


def _unit(row: Row) -> str:
    return f"{face_of(row.case).rate_counts} a second"


def _from_the_median(fleet: Fleet, row: Row, unlike_hosts: dict[str, Host]) -> Iterator[Finding]:
    """Yield which hosts are beyond doubt unlike the one in the middle, and remember the hosts."""
    if len(row.comparable) < 3:
        return
    median = row.median
    sides: dict[str, list[Finding]] = {"hosts-slower": [], "hosts-faster": []}
    for figure in row.comparable:
        found = compared(median, figure, fleet.alpha) if figure is not median else None
        if found and said_of(found) == DIFFERENT and not 1 - NEAR < found.estimate < 1 / (1 - NEAR):
            side = sides["hosts-slower" if found.estimate < 1 else "hosts-faster"]
            side.append(Finding("host-times", host=name(figure.host), times=found.estimate))
            unlike_hosts[figure.host.digest] = figure.host
    for code, hosts in sides.items():
        if hosts:
            yield Finding(code, median=name(median.host), where=row.place, hosts=tuple(hosts))


_MOST_EXPLAINED = 8


def _explained(fleet: Fleet, hosts: Iterable[Host], found: Sequence[Spread]) -> Iterator[Finding]:
    """Yield in what hosts differ from most whose figures do; that is no proof of what it comes from."""
    for host in list(hosts)[:_MOST_EXPLAINED]:
        if own := tuple(unlike(host, fleet.hosts, found)):
            yield Finding("host-unlike", host=name(host), facts=own)
        else:
            yield Finding("host-unlike-unknown", host=name(host))


def _apart(fleet: Fleet) -> Iterator[Finding]:
    """Yield which hosts can't be compared with the others, and why; the same of several cases once."""
    apart: dict[tuple[Finding, ...], dict[str, Host]] = {}
    for table in fleet.tables:
        for row in table.rows:
            for figure in row.apart:
                apart.setdefault(row.why_apart(figure), {})[figure.host.digest] = figure.host
    for reasons, hosts in apart.items():
        yield Finding("hosts-not-comparable", hosts=tuple(map(name, hosts.values())), reasons=reasons)


def _with_sync(row: Row) -> Finding | None:
    """Return whether hosts whose sync costs less reached more; None of too few hosts to ask."""
    points = [(one.host.sync_ns[0], one.rate) for one in row.comparable if one.host.sync_ns]
    if len(points) < 3:
        return None
    found: Trend = trend(points)
    if not found.is_shown:
        code = "sync-unclear"
    else:
        code = "cheaper-sync-more" if found.falls else "dearer-sync-more"
    return Finding(code, hosts=len(points), where=row.place, tau=found.tau)


def differing_facts(fleet: Fleet) -> Iterator[str]:
    """Yield in what the hosts differ, a sentence for each subject."""
    for spread in spreads(fleet.hosts):
        told = [f"{value} on {_where(own, len(fleet.hosts))}" for value, own in spread.values[:8]]
        more = len(spread.values) - 8
        others = [f"{plural(more, 'other value')}"] if more > 0 else []
        yield f"{spread.subject[:1].upper()}{spread.subject[1:]}: {'; '.join([*told, *others])}."


def _where(hosts: Sequence[Host], every: int) -> str:
    return f"{len(hosts)} hosts" if 2 * len(hosts) > every and len(hosts) > 1 else names(hosts)


__all__ = [
    "Fleet",
    "Host",
    "Joint",
    "LeftOut",
    "Measured",
    "Row",
    "Table",
    "Total",
    "conclude",
    "differing_facts",
    "gathered",
    "host_of",
]
