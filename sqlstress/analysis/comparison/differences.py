"""What reports differ in, as data: barriers, for which a ratio of two figures would mean nothing, and
remarks, which a reader of a ratio must know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlstress.analysis.builds import Builds, build_of, own_options, versions
from sqlstress.analysis.comparison.matching import Part, may_be_unknown
from sqlstress.analysis.durability import Durability, durability_of
from sqlstress.analysis.wording import amount, busy_policy, laid_out, listing, whole
from sqlstress.experiment import face_of
from sqlstress.report import Report
from sqlstress.report.case import UNKNOWN_DRIVER, Case
from sqlstress.report.traits import traits
from sqlstress.statistics.units import format_ms
from sqlstress.target import takes, worth

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
    work = [face_of(part.case).does or part.case.workload for part in parts]
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
    return [face_of(part.case).loop_of(part.case) for part in parts]


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
        worth = "each commit waits until the drive's cache is flushed"
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
