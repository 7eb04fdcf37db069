"""What reports differ in, as data: barriers, for which a ratio of two figures would mean nothing, and
remarks, which a reader of a ratio must know.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from sqlstress.analysis.durability import Builds, Durability, build_of, durability_of, own_options, versions
from sqlstress.analysis.group import Group, group_runs, reader_of
from sqlstress.analysis.wording import (
    amount,
    at_rate,
    busy_policy,
    laid_out,
    listing,
    place,
    processes,
    quota,
)
from sqlstress.errors import UsageError
from sqlstress.experiment import UnknownFigure, case_label, experiment_of
from sqlstress.report import Report, Run, Trial
from sqlstress.report.case import UNKNOWN_DRIVER, Case, traits
from sqlstress.statistics.units import format_ms, whole
from sqlstress.target import commit_class, stores_nothing, takes

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""What reports are called, in their order: so many can be compared."""
MOST_PAIRS = 40_000
"""Tables of one report times those of another, each of which is held against each: 200 settings in both."""

_PROCESSES = UnknownFigure(
    "the number of processes", lambda case: case.concurrency, lambda case: replace(case, concurrency=0)
)
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

    def measured(self) -> list[Run]:
        """Return the runs that it has."""
        return [run for run in self.runs if run]

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


# Matching: which tables of several reports belong together, and which of their cases.


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
            f"the reports have {len(groups):,} and {len(others):,} tables, which is too many to match. "
            "Compare reports with fewer settings."
        )

    def distance(case: Case, other: Case) -> int:
        """Return in how many fields two cases differ, in those of their parts too."""
        one, two = (experiment_of(each).table_key(each).spec for each in (case, other))
        pairs = ((case, other), (case.settings, other.settings), (one, two))
        return sum(len(differing(*pair)) for pair in pairs)

    pairs = sorted(
        (distance(group.case, other.case), i, j)
        for i, group in enumerate(groups)
        for j, other in enumerate(others)
        if experiment_of(group.case).table() == experiment_of(other.case).table()
    )
    found: dict[int, int] = {}
    for _, i, j in pairs:
        if i not in found and j not in found.values():
            found[i] = j
    return {i: others[j] for i, j in found.items()}


def differing(value: Any, other: Any) -> list[str]:
    """Return the names of the fields in which two values of a dataclass differ; none of values of two."""
    if type(value) is not type(other) or not is_dataclass(value):
        return []
    names = [field.name for field in fields(value)]
    return [name for name in names if getattr(value, name) != getattr(other, name)]


def _table(found: list[tuple[str, Report, Group]]) -> Table:
    groups = [group for _, _, group in found]
    sweeps = experiment_of(groups[0].case).sweeps
    layouts = [{run.case.buckets for run in group.runs} for group in groups]
    # Where reports have one layout each, and not the same, then that is what is compared.
    one_each = all(len(own) == 1 for own in layouts) and layouts.count(layouts[0]) < len(layouts)
    by_layout = not (sweeps and one_each)
    key_of = _key_of(groups, sweeps, by_layout)
    # Of a case that a plan holds twice, the first one stands.
    runs = [{key_of(run.case): run for run in reversed(group.runs)} for group in groups]
    order = dict.fromkeys(key_of(run.case) for group in groups for run in group.runs)
    keys = [key for key in order if sum(key in own for own in runs) > 1]
    if sweeps:
        keys.sort()
    parts = [
        Part(letter, report, group, tuple(own.get(key) for key in keys))
        for (letter, report, group), own in zip(found, runs, strict=True)
    ]
    return Table(sweeps, by_layout, tuple(keys), tuple(part for part in parts if any(part.runs)))


def _key_of(groups: Sequence[Group], sweeps: bool, by_layout: bool) -> Callable[[Case], Key]:
    if sweeps and by_layout:
        return lambda case: (case.rate, case.buckets, case.concurrency)
    if sweeps:
        return lambda case: (case.rate, case.concurrency)
    cases = [run.case for group in groups for run in group.runs]
    unknown = [figure for figure in _unknown_figures(cases[0]).values() if 0 in map(figure.value, cases)]

    def whole_case(case: Case) -> Key:
        """Return what the work was. When it is given up, and how it is shown, says nothing of it."""
        for figure in unknown:
            case = figure.without(case)
        return case_label(case), experiment_of(case).work_key(case).spec, case.settings.wal_autocheckpoint

    return whole_case


def _unknown_figures(case: Case) -> dict[str, UnknownFigure]:
    """Return figures that published reports may lack, by name. A missing figure matches any value."""
    return {"processes": _PROCESSES, **experiment_of(case).unknown_figures()}


# Barriers: what must be the same for a ratio of figures to mean anything.


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


def differences(parts: Parts) -> tuple[Difference, ...]:
    """Return in what parts differ, as far as it is known: barriers first."""
    found = (*barriers(parts), *_remarks(parts))
    return tuple(each for each in found if None in each.values or len(set(each.values)) > 1)


def barriers(parts: Parts) -> Iterator[Difference]:
    """Yield what must be the same, and what it is in each part."""
    letters, cases = [part.letter for part in parts], [part.case for part in parts]

    def barrier(subject: str, clause: str, values: Values) -> Difference:
        barred: list[str | None] = [None]
        for other in range(1, len(parts)):
            if unknown := [letters[part] for part in (0, other) if values[part] is None]:
                barred.append(f"{clause} is unknown for {listing(unknown)}")
            else:
                barred.append(f"{clause} differs" if values[other] != values[0] else None)
        return Difference(subject, tuple(values), tuple(barred))

    yield barrier("work", "the work", [experiment_of(case).activity or case.workload for case in cases])
    loads = loops = [""] * len(parts)  # of parts that do not the same work there is no more to say
    if len({case.workload for case in cases}) == 1:
        loads = reader_of(cases[0]).loads(cases)
        loops = [experiment_of(case).loop_of(case) for case in cases]
    yield barrier("load", "the load", loads)
    yield barrier("loop", "what drove the load, the native loop or Python's,", loops)
    for name, figure in _unknown_figures(cases[0]).items():
        figures = [
            sorted({value for run in part.measured() if (value := figure.value(run.case)) is not None})
            for part in parts
        ]
        known: Values = [listing([*map(whole, own)]) if all(own) else None for own in figures]
        yield barrier(name, figure.label, known if None in known else [""] * len(parts))
    # Where a part's target is another store, what commits are worth on the scale that all share.
    settings = all(stores_nothing(case.driver) or takes(case.driver, "journal-mode") for case in cases)
    promised = [(_durability if settings else _commit_class)(part) for part in parts]
    yield barrier("durability", "what a commit waits for", promised)
    hosts = [part.report.environment.host for part in parts]
    limited = any(host.is_limited for host in hosts)
    yield barrier(
        "CPU quota", "the CPU quota", [quota(host) or ("none" if limited else "") for host in hosts]
    )


def _commit_class(part: Part) -> str | None:
    """Return what a commit is worth; None where it is not known of all runs."""
    found = dict.fromkeys(commit_class(trial.durability) for trial in part.trials())
    return "; ".join(found) if found and "" not in found else None


def _durability(part: Part) -> str | None:
    """Return what commits wait for, whatever the call is named; None where it is not known of all runs."""
    if stores_nothing(part.case.driver):
        return "nothing is stored"
    environment = part.report.environment
    codes = {warning.code for warning in environment.warnings}
    found = [durability_of(trial.effective, environment.sync) for trial in part.trials()]
    promises = dict.fromkeys(None if each is None else _promise(each, codes) for each in found)
    return None if not promises or None in promises else "; ".join(filter(None, promises))


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


# Remarks: what reports may differ in without being incomparable.


def _remarks(parts: Parts) -> Iterator[Difference]:
    def remark(subject: str, values: Values) -> Difference:
        return Difference(subject, tuple(values), (None,) * len(parts))

    def if_known_to_differ(values: Values) -> Values:
        """Return values of which it is not worth a word that they are not known."""
        return values if len(set(values) - {None}) > 1 else [""] * len(values)

    def of_builds(values_of: Callable[[Builds], Values]) -> Values:
        """Return what is known of each part's library; of the dry driver, that there is none."""
        builds = [build_of(part.case.driver, part.report.environment.builds) for part in parts]
        pairs = zip(parts, values_of(builds), strict=True)
        return [value or ("none" if stores_nothing(part.case.driver) else None) for part, value in pairs]

    cases, hosts = [part.case for part in parts], [part.report.environment.host for part in parts]
    named = [case if case.driver != UNKNOWN_DRIVER else None for case in cases]
    layouts = [{run.case.buckets for run in part.measured()} for part in parts]
    one_each = max(map(len, layouts)) == 1  # of others the rows say it
    syncs = [part.report.environment.sync for part in parts]
    yield remark("verified", [_verified(part) for part in parts])
    yield remark(
        "layout",
        [
            laid_out(min(own), [run.case for run in part.measured()]) if one_each else ""
            for own, part in zip(layouts, parts, strict=True)
        ],
    )
    yield remark("measured", [amount(case) for case in cases])
    yield remark("driver", [case.driver if case else None for case in named])
    yield remark("waiting for the lock", [busy_policy(case) if case else None for case in named])
    yield remark("SQLite's version", of_builds(versions))
    yield remark("SQLite's options", if_known_to_differ(of_builds(own_options)))
    yield remark("settings such as page_size", _settings(parts))
    yield remark(
        "the call that syncs",
        if_known_to_differ([(sync.primitive or None) if sync else None for sync in syncs]),
    )
    known = [sync.overwrite_p50_ns for sync in syncs if sync]
    costs: Values = [f"{format_ms(sync.overwrite_p50_ns)} ms (p50)" if sync else None for sync in syncs]
    differ = known and max(known) > FLAT * min(known)  # by more than on one machine
    yield remark("what a sync costs", costs if differ else [""] * len(parts))
    yield remark("Python's version", [host.python or None for host in hosts])
    tools = [part.report.tool_version or None for part in parts]
    yield remark("sqlstress's version", if_known_to_differ(tools))


def _verified(part: Part) -> str:
    statuses = {run.verdict.status for run in part.measured()}
    if "failed" in statuses:
        return "found wrong"
    only = statuses.pop() if len(statuses) == 1 else ""
    return {"ok": "every case", "skipped": "no case"}.get(only, "in part")


def _settings(parts: Parts) -> Values:
    """Return the settings that were read back and differ, but for those that are said elsewhere."""
    read = [next((trial.effective for trial in part.trials() if trial.effective), None) for part in parts]
    known = [own for own in read if own is not None]
    elsewhere = {"journal_mode", "synchronous", "fullfsync", "busy_timeout"}
    names = sorted({name for own in known for name in own} - elsewhere)
    differ = [name for name in names if len({own.get(name) for own in known}) > 1]
    return [
        ("none" if stores_nothing(part.case.driver) else None)
        if own is None
        else ", ".join(f"{name}={own.get(name, 'not read back')}" for name in differ)
        for part, own in zip(parts, read, strict=True)
    ]


def options_apart(reports: Sequence[Report]) -> list[str]:
    """Return the options in which the first cases of reports differ; where none does, the one that may."""
    cases = [report.runs[0].case for report in reports if report.runs]
    if len({case.workload for case in cases}) > 1:
        return ["command"]
    values = [traits(case) for case in cases]
    names = [name for name in values[0] if len({own.get(name) for own in values}) > 1] if values else []
    return [f"--{name}" for name in names] or ["--concurrency"]
