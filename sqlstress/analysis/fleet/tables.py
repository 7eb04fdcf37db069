"""Tables of a fleet: a row for each case, and in it the hosts whose figures can be compared."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlstress.analysis.comparison.estimates import Estimate, estimate
from sqlstress.analysis.fleet.host import Host, Measured, Terms
from sqlstress.analysis.wording import place
from sqlstress.experiment import face_of
from sqlstress.report.case import Case


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

    def why_apart(self, figure: Figure) -> tuple[str, ...]:
        """Return why a figure can't be compared with the others: in which terms it differs."""
        own, usual = dict(figure.measured.terms), dict(self.terms)
        if not usual:
            return tuple(f"{subject} is not known" for subject, value in own.items() if value is None)
        return tuple(
            f"{subject} is {_known(value)}; of the others it is {_known(usual.get(subject))}"
            for subject, value in own.items()
            if value is None or value != usual.get(subject)
        )


def _known(value: str | None) -> str:
    return value or "not known"


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
            sweeps = face_of(row.case).sweeps
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
            key = face_of(case).tables, face_of(case).one_table(case)
            by_table.setdefault(key, []).append(_row(case, figures))
    return tuple(Table(tuple(sorted(rows, key=_order))) for rows in by_table.values())


def _order(row: Row) -> tuple[int, int]:
    sweeps = face_of(row.case).sweeps
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


def compared(base: Figure, other: Figure, alpha: float) -> Estimate | None:
    """Return how a host's figure compares with another's, from the trials of each."""
    return estimate(base.measured.logarithms, other.measured.logarithms, 1 - alpha)
