"""Differences between reports: barriers, which make ratios of rates meaningless, and remarks.

A barrier is, for example, different work. A remark, such as another version of Python, may only explain a
ratio. A run is all trials of a case, and a group is the runs in one table of a report. A part is one report's
runs in a table of several reports.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from sqlstress.analysis.durability import (
    Builds,
    Durability,
    build_of,
    distinct_options,
    durability_of,
    versions,
)
from sqlstress.analysis.group import Group, group_runs, reader_of
from sqlstress.analysis.wording import (
    amount,
    buckets_label,
    busy_policy,
    listing,
    place,
    processes,
    quota,
    rate_suffix,
)
from sqlstress.errors import UsageError
from sqlstress.experiment import case_label, experiment_of
from sqlstress.report import Report, Run, Trial
from sqlstress.report.case import UNKNOWN_DRIVER, Case, traits
from sqlstress.statistics.units import digits, format_ms
from sqlstress.target import durability_level, stores_nothing, takes

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Labels of compared reports: A for the first, and so on. So at most 26 reports can be compared."""
MAX_TABLE_PAIRS = 40_000
"""Maximum number of pairs (table of one report, table of another) that `match` compares."""

Key = tuple[Hashable, ...]
"""Key of a case. Cases of different reports with equal keys share a row."""


@dataclass(frozen=True, slots=True)
class ComparedPart:
    """Runs of one report that are compared with other reports' runs in a table: a run for each row."""

    letter: str
    report: Report
    group: Group
    """All runs in this report's own table, even of cases that no other report has."""
    runs: tuple[Run | None, ...]
    """Run of the report in each row; None if the report lacks the case."""

    @property
    def case(self) -> Case:
        """First case in this report's table. Other cases differ only in fields that the table varies."""
        return self.group.case

    def measured(self) -> list[Run]:
        """Return the runs of this report that the table shows."""
        return [run for run in self.runs if run]

    def trials(self) -> Iterator[Trial]:
        """Yield the valid trials of the runs that the table shows."""
        yield from (trial for run in self.measured() for trial in run.valid)


@dataclass(frozen=True, slots=True)
class DifferencesTable:
    """Table of the cases that two or more reports share: a row for each case."""

    sweeps: bool
    """Whether rows may differ in the numbers of processes and files, and in the rate."""
    by_layout: bool
    """Whether row labels have the number of files. False if, for example, A has 20 files and B has 1."""
    keys: tuple[Key, ...]
    """Key of each row. If `sweeps`, the last element is the number of processes."""
    parts: tuple[ComparedPart, ...]
    """A part for each report that has any of these cases, in the order of the reports."""

    def case(self, row: int) -> Case:
        """Return the case of a row, from the first report that has the case."""
        return next(run.case for part in self.parts if (run := part.runs[row]))

    def row_name(self, row: int) -> str:
        """Return the label of a row's case."""
        case = self.case(row)
        if self.by_layout or not self.sweeps:
            return place(case)
        return f"{processes(case.concurrency)}{rate_suffix(case)}"


def match(reports: Sequence[Report]) -> Iterator[DifferencesTable]:
    """Match each table of the first report with a table of each other report; yield joint tables.

    Tables whose cases differ in the fewest fields are matched. A joint table has the cases that two or more
    reports have. Raise UsageError for too many tables.
    """
    first, *others = (group_runs(report.runs) for report in reports)
    partners = [_match_groups(first, groups) for groups in others]
    for index, group in enumerate(first):
        matched = [
            (0, group),
            *((n, by_group[index]) for n, by_group in enumerate(partners, 1) if index in by_group),
        ]
        table = _table([(LETTERS[n], reports[n], partner) for n, partner in matched])
        if len(table.parts) > 1 and table.parts[0].letter == LETTERS[0]:
            yield table


def _match_groups(groups: Sequence[Group], others: Sequence[Group]) -> dict[int, Group]:
    """Match the tables (groups) of two reports. Return the matching `others` by index in `groups`.

    Pairs with the fewest different fields are matched first. Raise UsageError for more than MAX_TABLE_PAIRS
    pairs, because their comparison would take seconds.
    """
    if len(groups) * len(others) > MAX_TABLE_PAIRS:
        raise UsageError(
            f"the reports have {len(groups):,} and {len(others):,} tables, which is too many to match. "
            "Compare reports with fewer settings."
        )

    def distance(case: Case, other: Case) -> int:
        spec, other_spec = (experiment_of(side).table_key(side).spec for side in (case, other))
        pairs = ((case, other), (case.settings, other.settings), (spec, other_spec))
        return sum(len(differing(*pair)) for pair in pairs)

    pairs = sorted(
        (distance(group.case, other.case), i, j)
        for i, group in enumerate(groups)
        for j, other in enumerate(others)
        if experiment_of(group.case).table() == experiment_of(other.case).table()
    )
    partner_of: dict[int, int] = {}
    for _, i, j in pairs:
        if i not in partner_of and j not in partner_of.values():
            partner_of[i] = j
    return {i: others[j] for i, j in partner_of.items()}


def differing(value: Any, other: Any) -> list[str]:
    """Return the names of fields in which two objects of one dataclass differ; [] for other objects."""
    if type(value) is not type(other) or not is_dataclass(value):
        return []
    names = [field.name for field in fields(value)]
    return [name for name in names if getattr(value, name) != getattr(other, name)]


def _table(members: list[tuple[str, Report, Group]]) -> DifferencesTable:
    """Return a table of the cases that two or more of the given groups (tables of reports) share.

    `members` has a tuple for each report: (letter of the report, report, matching group).
    """
    groups = [group for _, _, group in members]
    sweeps = experiment_of(groups[0].case).sweeps
    layouts = [{run.case.buckets for run in group.runs} for group in groups]
    # If each report has a single number of files, and these numbers differ (20 files in A, 1 in B), the user
    # compares numbers of files. So cases share a row even if their numbers of files differ.
    one_each = all(len(counts) == 1 for counts in layouts) and layouts.count(layouts[0]) < len(layouts)
    by_layout = not (sweeps and one_each)
    key_of = _key_of(groups, sweeps, by_layout)
    # If a report has two runs with one key, the first run is used.
    runs = [{key_of(run.case): run for run in reversed(group.runs)} for group in groups]
    order = dict.fromkeys(key_of(run.case) for group in groups for run in group.runs)
    keys = [key for key in order if sum(key in by_key for by_key in runs) > 1]
    if sweeps:
        keys.sort()
    parts = [
        ComparedPart(letter, report, group, tuple(by_key.get(key) for key in keys))
        for (letter, report, group), by_key in zip(members, runs, strict=True)
    ]
    return DifferencesTable(sweeps, by_layout, tuple(keys), tuple(part for part in parts if any(part.runs)))


def _key_of(groups: Sequence[Group], sweeps: bool, by_layout: bool) -> Callable[[Case], Key]:
    if sweeps and by_layout:
        return lambda case: (case.rate, case.buckets, case.concurrency)
    if sweeps:
        return lambda case: (case.rate, case.concurrency)
    # An unknown number of processes (0) matches any number, so the number is left out of all keys.
    cases = [run.case for group in groups for run in group.runs]
    is_unknown = any(case.concurrency == 0 for case in cases)

    def work_fields(case: Case) -> Key:
        if is_unknown:
            case = replace(case, concurrency=0)
        return case_label(case), experiment_of(case).work_key(case).spec, case.settings.wal_autocheckpoint

    return work_fields


SYNC_COST_TOLERANCE = 1.25
"""Ratio of the times for a sync in two reports above which the difference is reported."""
Parts = Sequence[ComparedPart]
Values = Sequence[str | None]
"""Value of a property in each report; None if unknown."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Property of reports, such as the driver, with its value in each report."""

    subject: str
    values: tuple[str | None, ...]
    barred: tuple[str | None, ...]
    """Reason, for each report, why its ratios to the first report are meaningless; None if they are valid."""


def differences(parts: Parts) -> tuple[Difference, ...]:
    """Return the properties that differ, or are unknown in a report. Barriers to a comparison come first."""
    subjects = (*barriers(parts), *_remarks(parts))
    return tuple(
        difference for difference in subjects if None in difference.values or len(set(difference.values)) > 1
    )


def barriers(parts: Parts) -> Iterator[Difference]:
    """Yield the properties in which comparable reports must agree, such as the work, with their values."""
    letters, cases = [part.letter for part in parts], [part.case for part in parts]

    def barrier(subject: str, clause: str, values: Values) -> Difference:
        """Return a property with its value in each report. `clause` names the property in a sentence.

        A report's ratios to the first report are meaningless if their values differ, or any is unknown.
        """
        barred: list[str | None] = [None]
        for other in range(1, len(parts)):
            if unknown := [letters[place] for place in (0, other) if values[place] is None]:
                barred.append(f"{clause} is unknown for {listing(unknown)}")
            else:
                barred.append(f"{clause} differs" if values[other] != values[0] else None)
        return Difference(subject, tuple(values), tuple(barred))

    yield barrier("work", "the work", [experiment_of(case).activity or case.workload for case in cases])
    loads = loops = [""] * len(parts)  # loads of different work cannot be compared
    if len({case.workload for case in cases}) == 1:
        loads = reader_of(cases[0]).loads(cases)
        loops = [experiment_of(case).loop_of(case) for case in cases]
    yield barrier("load", "the load", loads)
    yield barrier("loop", "what drove the load, the native loop or Python's,", loops)
    counts = [sorted({run.case.concurrency for run in part.measured()}) for part in parts]
    values: Values = [listing([*map(digits, numbers)]) if all(numbers) else None for numbers in counts]
    # Cases with an unknown number of processes match cases with any number. Known numbers need no comparison,
    # because only cases with equal numbers match.
    known_values = values if None in values else [""] * len(parts)
    yield barrier("processes", "the number of processes", known_values)
    # SQLite's settings are compared only if all reports use SQLite. Else a text for all targets is compared.
    settings = all(stores_nothing(case.driver) or takes(case.driver, "journal-mode") for case in cases)
    durabilities = [(_durability if settings else _commit_class)(part) for part in parts]
    yield barrier("durability", "what a commit waits for", durabilities)
    hosts = [part.report.environment.host for part in parts]
    limited = any(host.is_limited for host in hosts)
    yield barrier(
        "CPU quota", "the CPU quota", [quota(host) or ("none" if limited else "") for host in hosts]
    )


def _commit_class(part: ComparedPart) -> str | None:
    """Return the durability of commits as a text for any target, such as SQLite; None if unknown."""
    classes = dict.fromkeys(durability_level(trial.durability) for trial in part.trials())
    return "; ".join(classes) if classes and "" not in classes else None


def _durability(part: ComparedPart) -> str | None:
    """Return SQLite's settings and the durability of commits, as text; None if any is unknown."""
    if stores_nothing(part.case.driver):
        return "nothing is stored"
    environment = part.report.environment
    codes = {warning.code for warning in environment.warnings}
    trials = [durability_of(trial.effective, environment.sync) for trial in part.trials()]
    texts = dict.fromkeys(
        None if durability is None else _durability_text(durability, codes) for durability in trials
    )
    return None if not texts or None in texts else "; ".join(filter(None, texts))


def _durability_text(durability: Durability, warning_codes: set[str]) -> str | None:
    """Return SQLite's settings and the effect of a sync; None if the name of the sync call is unknown."""
    if not durability.syncs:
        worth = "no commit waits for a sync"
    elif "sync-does-nothing" in warning_codes:
        worth = "each commit waits for a sync that does nothing"
    elif durability.primitive is None:
        return None
    elif durability.primitive == "F_FULLFSYNC" and "apple-fullfsync" in warning_codes:
        worth = "each commit waits for what is reportedly a barrier only"
    elif not durability.reaches_the_medium:
        worth = "each commit waits until the drive has it in its cache"
    else:
        worth = "each commit asks the drive to flush its cache"
    # In WAL mode, EXTRA has the same effect as FULL.
    shown = (
        replace(durability, level="full")
        if (durability.journal, durability.level) == ("wal", "extra")
        else durability
    )
    return f"{shown.name}, {worth}"


def _remarks(parts: Parts) -> Iterator[Difference]:
    def remark(subject: str, values: Values) -> Difference:
        return Difference(subject, tuple(values), (None,) * len(parts))

    def if_known_to_differ(values: Values) -> Values:
        """Return `values` if known values differ. Else return equal texts (""), to prevent a remark."""
        return values if len(set(values) - {None}) > 1 else [""] * len(values)

    def build_values(texts_of: Callable[[Builds], Values]) -> Values:
        """Return a text on each report's SQLite build by `texts_of`, such as `versions`, or "none"."""
        builds = [build_of(part.case.driver, part.report.environment.builds) for part in parts]
        pairs = zip(parts, texts_of(builds), strict=True)
        return [value or ("none" if stores_nothing(part.case.driver) else None) for part, value in pairs]

    cases, hosts = [part.case for part in parts], [part.report.environment.host for part in parts]
    named = [case if case.driver != UNKNOWN_DRIVER else None for case in cases]
    layouts = [{run.case.buckets for run in part.measured()} for part in parts]
    one_each = max(map(len, layouts)) == 1  # if a report varies the number of files, the rows show it
    syncs = [part.report.environment.sync for part in parts]
    yield remark("verified", [_verification(part) for part in parts])
    yield remark(
        "layout",
        [
            buckets_label(min(counts), [run.case for run in part.measured()]) if one_each else ""
            for counts, part in zip(layouts, parts, strict=True)
        ],
    )
    yield remark("measured", [amount(case) for case in cases])
    yield remark("driver", [case.driver if case else None for case in named])
    yield remark("waiting for the lock", [busy_policy(case) if case else None for case in named])
    yield remark("SQLite's version", build_values(versions))
    yield remark("SQLite's options", if_known_to_differ(build_values(distinct_options)))
    yield remark("settings such as page_size", _differing_settings(parts))
    yield remark(
        "the call that syncs",
        if_known_to_differ([(sync.primitive or None) if sync else None for sync in syncs]),
    )
    costs_ns = [sync.overwrite_p50_ns for sync in syncs if sync]
    costs: Values = [f"{format_ms(sync.overwrite_p50_ns)} ms (p50)" if sync else None for sync in syncs]
    differ = costs_ns and max(costs_ns) > SYNC_COST_TOLERANCE * min(costs_ns)
    yield remark("what a sync costs", costs if differ else [""] * len(parts))
    yield remark("Python's version", [host.python or None for host in hosts])
    tools = [part.report.tool_version or None for part in parts]
    yield remark("sqlstress's version", if_known_to_differ(tools))


def _verification(part: ComparedPart) -> str:
    statuses = {run.verdict.status for run in part.measured()}
    if "failed" in statuses:
        return "found wrong"
    only = statuses.pop() if len(statuses) == 1 else ""
    return {"ok": "every case", "skipped": "no case"}.get(only, "in part")


def _differing_settings(parts: Parts) -> Values:
    """Return, for each report, the settings that differ: "cache_size=-2000"; None if unknown."""
    settings = [next((trial.effective for trial in part.trials() if trial.effective), None) for part in parts]
    known_settings = [effective for effective in settings if effective is not None]
    elsewhere = {"journal_mode", "synchronous", "fullfsync", "busy_timeout"}
    names = sorted({name for effective in known_settings for name in effective} - elsewhere)
    differ = [name for name in names if len({effective.get(name) for effective in known_settings}) > 1]
    return [
        ("none" if stores_nothing(part.case.driver) else None)
        if effective is None
        else ", ".join(f"{name}={effective.get(name, 'not read back')}" for name in differ)
        for part, effective in zip(parts, settings, strict=True)
    ]


def differing_options(reports: Sequence[Report]) -> list[str]:
    """Return the options that keep reports from having a case in common, such as "--synchronous".

    Only the first case of each report is compared. Return ["command"] if the commands differ, and
    ["--concurrency"] if all options agree.
    """
    cases = [report.runs[0].case for report in reports if report.runs]
    if len({case.workload for case in cases}) > 1:
        return ["command"]
    values = [traits(case) for case in cases]
    names = (
        [name for name in values[0] if len({case_traits.get(name) for case_traits in values}) > 1]
        if values
        else []
    )
    return [f"--{name}" for name in names] or ["--concurrency"]
