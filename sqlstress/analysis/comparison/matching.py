"""Matching: which tables of several reports belong together, and which of their cases."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from sqlstress.analysis.group import Group, group_runs
from sqlstress.analysis.wording import at_rate, place, processes
from sqlstress.errors import UsageError
from sqlstress.experiment import face_of
from sqlstress.report import Report, Run, Trial
from sqlstress.report.case import Case
from sqlstress.target import stores_nothing

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""What reports are called, in their order: so many can be compared."""

MOST_PAIRS = 40_000
"""Tables of one report times those of another, each of which is held against each: 200 settings in both."""

PROCESSES = "processes"

Figure = Callable[[Case], int | None]
Key = tuple[Hashable, ...]
"""What cases of different reports must have in common to be the same."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one report has to say of the cases that are compared."""

    letter: str
    """What the report is called."""
    report: Report
    group: Group
    """Its table: its own cases, also those that no other report has."""
    runs: tuple[Run | None, ...]
    """One for each row; None where the report has not got the case."""

    @property
    def case(self) -> Case:
        """One of its cases: it stands for all, but for what the experiment varies."""
        return self.group.case

    @property
    def stores_nothing(self) -> bool:
        """Whether its figures are the harness's own ceiling."""
        return stores_nothing(self.case.driver)

    def measured(self) -> Iterator[Run]:
        """Yield the runs that it has."""
        yield from filter(None, self.runs)

    def trials(self) -> Iterator[Trial]:
        """Yield the trials of these runs that count."""
        yield from (trial for run in self.measured() for trial in run.valid)


@dataclass(frozen=True, slots=True)
class Table:
    """Cases that two reports or more have in common."""

    sweeps: bool
    """Whether its cases are layouts with numbers of processes."""
    by_layout: bool
    """Whether a row is a layout and a concurrency; else it is a concurrency, whatever the layout."""
    keys: tuple[Key, ...]
    """What the cases of each row have in common; of a key-value case the concurrency comes last."""
    parts: tuple[Part, ...]
    """The first report, and those others that have any of the cases."""

    def case(self, row: int) -> Case:
        """Return the case of a row, as the first report has it that has it."""
        return next(run.case for part in self.parts if (run := part.runs[row]))

    def row_name(self, row: int) -> str:
        """Return which case a row is, in words."""
        case = self.case(row)
        if self.by_layout or not self.sweeps:
            return place(case)
        return f"{processes(case.concurrency)}{at_rate(case)}"


def match(reports: Sequence[Report]) -> Iterator[Table]:
    """Yield what the first report has in common with any other, in the first one's order.

    Where settings or loads differ, the tables that differ least belong together. A case that two others
    have and the first has not stands among those of its table.
    """
    first, *others = (group_runs(report.runs) for report in reports)
    partners = [_partners(first, groups) for groups in others]
    for index, group in enumerate(first):
        found = [(0, group), *((n, own[index]) for n, own in enumerate(partners, 1) if index in own)]
        table = _table([(LETTERS[n], reports[n], partner) for n, partner in found])
        if len(table.parts) > 1 and table.parts[0].letter == LETTERS[0]:
            yield table


def _partners(groups: Sequence[Group], others: Sequence[Group]) -> dict[int, Group]:
    """Return {index of a group: the group of another report that differs least from it}, each used once.

    Raises UsageError for more groups than can be held against each other in a second or two.
    """
    if len(groups) * len(others) > MOST_PAIRS:
        raise UsageError(
            f"these reports have {len(groups):,} and {len(others):,} tables, too many to match: "
            "compare reports of fewer settings."
        )
    pairs = sorted(
        (_distance(group.case, other.case), i, j)
        for i, group in enumerate(groups)
        for j, other in enumerate(others)
        if face_of(group.case).tables == face_of(other.case).tables
    )
    found: dict[int, int] = {}
    for _, i, j in pairs:
        if i not in found and j not in found.values():
            found[i] = j
    return {i: others[j] for i, j in found.items()}


def _distance(case: Case, other: Case) -> int:
    """Return in how many fields two cases differ, in those of their parts too."""
    one, two = (face_of(each).one_table(each) for each in (case, other))
    found = [differing(case, other), differing(case.settings, other.settings), differing(one.spec, two.spec)]
    return sum(map(len, found))


def differing(value: Any, other: Any) -> list[str]:
    """Return the names of the fields in which two values of a dataclass differ; none of values of two."""
    if type(value) is not type(other) or not is_dataclass(value):
        return []
    names = [field.name for field in fields(value)]
    return [name for name in names if getattr(value, name) != getattr(other, name)]


def _table(found: list[tuple[str, Report, Group]]) -> Table:
    sweeps = face_of(found[0][2].case).sweeps
    by_layout = not _one_layout_each([group for _, _, group in found])
    key_of = _key_of([group for _, _, group in found], by_layout)
    # Of a case that a plan holds twice, the first one stands.
    runs = [{key_of(run.case): run for run in reversed(group.runs)} for _, _, group in found]
    order = list(dict.fromkeys(key_of(run.case) for _, _, group in found for run in group.runs))
    keys = [key for key in order if sum(key in own for own in runs) > 1]
    if sweeps:
        keys.sort()
    parts = [
        Part(letter, report, group, tuple(own.get(key) for key in keys))
        for (letter, report, group), own in zip(found, runs, strict=True)
    ]
    return Table(sweeps, by_layout, tuple(keys), tuple(part for part in parts if any(part.runs)))


def _one_layout_each(groups: Sequence[Group]) -> bool:
    """Return whether reports have one layout each, and not the same: then that is what is compared."""
    layouts = [{run.case.buckets for run in group.runs} for group in groups]
    return (
        face_of(groups[0].case).sweeps
        and all(len(own) == 1 for own in layouts)
        and layouts.count(layouts[0]) < len(layouts)
    )


def _key_of(groups: Sequence[Group], by_layout: bool) -> Callable[[Case], Key]:
    if face_of(groups[0].case).sweeps:
        return _layout if by_layout else _concurrency
    cases = [run.case for group in groups for run in group.runs]
    figures = may_be_unknown(cases[0])
    forgotten = [name for name, (_, figure) in figures.items() if 0 in map(figure, cases)]
    return lambda case: _whole_case(case, forgotten)


def may_be_unknown(case: Case) -> dict[str, tuple[str, Figure]]:
    """Return what may not be known of figures that somebody else published, and is 0 then: it matches any.

    It is a name → what it is called in a sentence, and what it is of a case.
    """
    return {PROCESSES: ("the number of processes", lambda case: case.concurrency)} | dict(
        face_of(case).may_be_unknown
    )


def _layout(case: Case) -> Key:
    return *_rate(case), case.buckets, case.concurrency


def _concurrency(case: Case) -> Key:
    return *_rate(case), case.concurrency


def _rate(case: Case) -> Key:
    return (case.arrivals.rate,) if case.arrivals else ()


def _whole_case(case: Case, forgotten: Sequence[str]) -> Key:
    """Return what the work was. When it would have been given up, and how it is shown, says nothing of it."""
    if PROCESSES in forgotten:
        case = replace(case, concurrency=0)
    experiment = face_of(case)
    own = experiment.forget(case) if set(forgotten) - {PROCESSES} else case
    return case.label, experiment.same_work(own).spec, case.settings.wal_autocheckpoint
