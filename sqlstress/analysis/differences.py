"""What reports differ in, as data: barriers, for which a ratio of two figures would mean nothing, and
remarks, which a reader of a ratio must know.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from sqlstress.analysis.durability import Builds, Durability, build_of, durability_of, own_options, versions
from sqlstress.analysis.group import Group, group_runs
from sqlstress.analysis.wording import (
    amount,
    at_rate,
    busy_policy,
    laid_out,
    listing,
    place,
    processes,
    whole,
)
from sqlstress.errors import UsageError
from sqlstress.experiment import face_of
from sqlstress.report import Report, Run, Trial
from sqlstress.report.case import UNKNOWN_DRIVER, Case, traits
from sqlstress.statistics.units import format_ms
from sqlstress.target import stores_nothing, takes, worth

# Matching: which tables of several reports belong together, and which of their cases.


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
    one, two = (face_of(each).alike.one_table(each) for each in (case, other))
    found = [differing(case, other), differing(case.settings, other.settings), differing(one.spec, two.spec)]
    return sum(map(len, found))


def differing(value: Any, other: Any) -> list[str]:
    """Return the names of the fields in which two values of a dataclass differ; none of values of two."""
    if type(value) is not type(other) or not is_dataclass(value):
        return []
    names = [field.name for field in fields(value)]
    return [name for name in names if getattr(value, name) != getattr(other, name)]


def _table(found: list[tuple[str, Report, Group]]) -> Table:
    sweeps = face_of(found[0][2].case).behaviour.sweeps
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
        face_of(groups[0].case).behaviour.sweeps
        and all(len(own) == 1 for own in layouts)
        and layouts.count(layouts[0]) < len(layouts)
    )


def _key_of(groups: Sequence[Group], by_layout: bool) -> Callable[[Case], Key]:
    if face_of(groups[0].case).behaviour.sweeps:
        return _layout_key if by_layout else _concurrency
    cases = [run.case for group in groups for run in group.runs]
    figures = may_be_unknown(cases[0])
    forgotten = [name for name, (_, figure) in figures.items() if 0 in map(figure, cases)]
    return lambda case: _whole_case(case, forgotten)


def may_be_unknown(case: Case) -> dict[str, tuple[str, Figure]]:
    """Return what may not be known of figures that somebody else published, and is 0 then: it matches any.

    It is a name → what it is called in a sentence, and what it is of a case.
    """
    return {PROCESSES: ("the number of processes", lambda case: case.concurrency)} | dict(
        face_of(case).alike.may_be_unknown
    )


def _layout_key(case: Case) -> Key:
    return case.rate, case.buckets, case.concurrency


def _concurrency(case: Case) -> Key:
    return case.rate, case.concurrency


def _whole_case(case: Case, forgotten: Sequence[str]) -> Key:
    """Return what the work was. When it would have been given up, and how it is shown, says nothing of it."""
    if PROCESSES in forgotten:
        case = replace(case, concurrency=0)
    experiment = face_of(case)
    own = experiment.alike.forget(case) if set(forgotten) - {PROCESSES} else case
    return case.label, experiment.alike.same_work(own).spec, case.settings.wal_autocheckpoint


FLAT = 1.25
"""What a sync costs may differ by this factor on one machine."""
Parts = Sequence[Part]
Values = Sequence[str | None]
"""What something is in each part; None where it is not known."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Something in which reports differ, or in which they may: of some it is not known."""

    subject: str
    """What it is, as people would call it."""
    values: tuple[str | None, ...]
    """What it is in each part; None where it is not known."""
    barred: tuple[str | None, ...]
    """For each part: why its figures can't be set in a ratio to the first one's; None: this is no reason."""

    @property
    def is_one(self) -> bool:
        """Whether the parts differ in it, as far as it is known."""
        return None in self.values or len(set(self.values)) > 1


def barriers(parts: Parts) -> Iterator[Difference]:
    """Yield what must be the same, and what it is in each part."""
    letters = [part.letter for part in parts]
    work = [face_of(part.case).words.does or part.case.workload for part in parts]
    yield _barrier("work", "the work", work, letters)
    yield _barrier("load", "the load", _load(parts), letters)
    yield _barrier("loop", "what drove the load, the native loop or Python's,", _loop(parts), letters)
    for name, (clause, figure) in may_be_unknown(parts[0].case).items():
        yield _barrier(name, clause, _told_if_unknown(parts, figure), letters)
    yield _barrier("durability", "what a commit waits for", _durabilities(parts), letters)


def _barrier(subject: str, clause: str, values: Values, letters: Sequence[str]) -> Difference:
    def reason(place: int) -> str | None:
        unknown = [letters[i] for i in (0, place) if values[i] is None]
        if unknown:
            return f"{clause} is not known of {listing(unknown)}"
        return f"{clause} differs" if values[place] != values[0] else None

    return Difference(subject, tuple(values), (None, *map(reason, range(1, len(values)))))


def _load(parts: Parts) -> list[str]:
    """Return what differs in the loads of parts that do the same work."""
    first = parts[0].case
    if any(part.case.workload != first.workload for part in parts):
        return [""] * len(parts)
    return face_of(first).show().loads([part.case for part in parts])


def _loop(parts: Parts) -> list[str]:
    """Return what drove the loads of parts that do the same work."""
    if any(part.case.workload != parts[0].case.workload for part in parts):
        return [""] * len(parts)
    return [face_of(part.case).behaviour.loop_of(part.case) for part in parts]


def _told_if_unknown(parts: Parts, figure: Callable[[Case], int | None]) -> Values:
    """Return what cases were matched without, since of some it is not known."""
    found = [
        sorted({value for run in part.measured() if (value := figure(run.case)) is not None})
        for part in parts
    ]
    if all(map(all, found)):
        return [""] * len(parts)
    return [listing([*map(whole, values)]) if all(values) else None for values in found]


def _durabilities(parts: Parts) -> Values:
    """Return what commits wait for; where a part's target is another store, on the scale that all share."""
    if all(part.stores_nothing or takes(part.case.driver, "journal-mode") for part in parts):
        return [_durability(part) for part in parts]
    return [_worth(part) for part in parts]


def _worth(part: Part) -> str | None:
    """Return what a commit is worth; None where it is not known of all runs."""
    found = dict.fromkeys(worth(trial.durability) for trial in part.trials())
    return "; ".join(found) if found and "" not in found else None


def _durability(part: Part) -> str | None:
    """Return what commits wait for, whatever the call is named; None where it is not known of all runs."""
    if part.stores_nothing:
        return "nothing is stored"
    environment = part.report.environment
    codes = {warning.code for warning in environment.warnings}
    found = [durability_of(trial.effective, environment.sync) for trial in part.trials()]
    told = dict.fromkeys(None if one is None else _promise(one, codes) for one in found)
    return None if not told or None in told else "; ".join(filter(None, told))


def _promise(found: Durability, codes: set[str]) -> str | None:
    """Return what a commit waits for, and what that is worth; None where the call is not known."""
    if not found.syncs:
        worth = "no commit waits for a sync"
    elif "sync-does-nothing" in codes:
        worth = "each commit waits for a sync that does nothing"
    elif found.primitive is None:
        return None
    elif found.primitive == "F_FULLFSYNC" and "apple-fullfsync" in codes:
        worth = "each commit waits for what is reportedly a barrier only"
    elif not found.reaches_the_medium:
        worth = "each commit waits until the drive has it in its cache"
    else:
        worth = "each commit asks the drive to flush its cache"
    # In WAL mode EXTRA is FULL by another name.
    same = replace(found, level="full") if (found.journal, found.level) == ("wal", "extra") else found
    return f"{same.name}, {worth}"


_VERIFIED = {frozenset({"ok"}): "every case", frozenset({"skipped"}): "no case"}
_TOLD_ELSEWHERE = {"journal_mode", "synchronous", "fullfsync", "busy_timeout"}


def remarks(parts: Parts) -> Iterator[Difference]:
    """Yield what may differ, and what it is in each part."""
    for subject, value in _SUBJECTS.items():
        yield Difference(subject, tuple(value(parts)), (None,) * len(parts))


def _verified(parts: Parts) -> Values:
    statuses = [{run.verdict.status for run in part.measured()} for part in parts]
    return [
        "found wrong" if "failed" in own else _VERIFIED.get(frozenset(own), "in part") for own in statuses
    ]


def _layout(parts: Parts) -> Values:
    """Return the layouts of parts that have one each; of others the rows say it."""
    layouts = [{run.case.buckets for run in part.measured()} for part in parts]
    return [
        laid_out(min(own), [run.case for run in part.measured()]) if max(map(len, layouts)) == 1 else ""
        for own, part in zip(layouts, parts, strict=True)
    ]


def _of_builds(parts: Parts, told: Callable[[Builds], Values]) -> Values:
    """Return what is told of each part's library; of the dry driver, that there is none."""
    builds = [build_of(part.case.driver, part.report.environment.builds) for part in parts]
    return [
        value or ("none" if part.stores_nothing else None)
        for part, value in zip(parts, told(builds), strict=True)
    ]


def _if_known_to_differ(values: Values) -> Values:
    """Return values of which it is not worth a word that they are not known."""
    return values if len(set(values) - {None}) > 1 else [""] * len(values)


def _settings(parts: Parts) -> Values:
    """Return the settings that were read back and differ, but for those that are told elsewhere."""
    read = [next((trial.effective for trial in part.trials() if trial.effective), None) for part in parts]
    known = [own for own in read if own is not None]
    names = sorted({name for own in known for name in own} - _TOLD_ELSEWHERE)
    differ = [name for name in names if len({own.get(name) for own in known}) > 1]

    def text(part: Part, own: dict[str, str] | None) -> str | None:
        if own is None:
            return "none" if part.stores_nothing else None
        return ", ".join(f"{name}={own.get(name, 'not read back')}" for name in differ)

    return [text(part, own) for part, own in zip(parts, read, strict=True)]


def _sync_call(parts: Parts) -> Values:
    costs = [part.report.environment.sync for part in parts]
    return _if_known_to_differ([(cost.primitive or None) if cost else None for cost in costs])


def _sync_cost(parts: Parts) -> Values:
    """Return what a sync costs, where that differs by more than it would on one machine."""
    costs = [part.report.environment.sync for part in parts]
    known = [cost.overwrite_p50_ns for cost in costs if cost]
    if not known or max(known) <= FLAT * min(known):
        return [""] * len(parts)
    return [f"{format_ms(cost.overwrite_p50_ns)} ms (p50)" if cost else None for cost in costs]


def _knows_driver(part: Part) -> bool:
    return part.case.driver != UNKNOWN_DRIVER


def _tool(parts: Parts) -> Values:
    return _if_known_to_differ([part.report.tool_version or None for part in parts])


_SUBJECTS: dict[str, Callable[[Parts], Values]] = {
    "verified": _verified,
    "layout": _layout,
    "measured": lambda parts: [amount(part.case) for part in parts],
    "driver": lambda parts: [part.case.driver if _knows_driver(part) else None for part in parts],
    "waiting for the lock": lambda parts: [
        busy_policy(part.case) if _knows_driver(part) else None for part in parts
    ],
    "SQLite's version": lambda parts: _of_builds(parts, versions),
    "SQLite's options": lambda parts: _if_known_to_differ(_of_builds(parts, own_options)),
    "settings such as page_size": _settings,
    "the call that syncs": _sync_call,
    "what a sync costs": _sync_cost,
    "Python's version": lambda parts: [part.report.environment.host.python or None for part in parts],
    "sqlstress's version": _tool,
}
"""What reports may differ in without being incomparable → what it is in each."""


def options_apart(reports: Sequence[Report]) -> list[str]:
    """Return the options in which the first cases of reports differ; where none does, the one that may."""
    cases = [report.runs[0].case for report in reports if report.runs]
    if len({case.workload for case in cases}) > 1:
        return ["command"]
    told = [traits(case) for case in cases]
    names = [name for name in told[0] if len({own.get(name) for own in told}) > 1] if told else []
    return [f"--{name}" for name in names] or ["--concurrency"]
