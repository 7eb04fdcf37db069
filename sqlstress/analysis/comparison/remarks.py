"""Remarks: the differences that a reader of a ratio must know, and that don't forbid it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlstress.analysis.comparison.difference import Difference, Parts, Values
from sqlstress.analysis.comparison.matching import Part
from sqlstress.analysis.wording import amount, busy_policy, files
from sqlstress.report import SqliteBuild
from sqlstress.report.case import UNKNOWN_DRIVER

TELLING = (
    *("DEFAULT_SYNCHRONOUS", "DEFAULT_WAL_SYNCHRONOUS", "DEFAULT_CKPTFULLFSYNC"),
    *("DEFAULT_WAL_AUTOCHECKPOINT", "DEFAULT_JOURNAL_SIZE_LIMIT", "DEFAULT_PAGE_SIZE", "DEFAULT_CACHE_SIZE"),
    *("ENABLE_PREUPDATE_HOOK", "ENABLE_SETLK_TIMEOUT", "THREADSAFE"),
)
"""The compile options that change what a commit costs or what it is worth."""

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
    return [files(min(own)) if max(map(len, layouts)) == 1 else "" for own in layouts]


def _build(part: Part) -> SqliteBuild | None:
    builds = part.report.environment.builds
    return next((build for build in builds if build.driver == part.case.driver and build.version), None)


def _of_builds(parts: Parts, text: Callable[[SqliteBuild], str]) -> Values:
    """Return what is said of each part's library; of the dry driver, that there is none."""
    builds = [(part, _build(part)) for part in parts]
    return [text(build) if build else "none" if part.stores_nothing else None for part, build in builds]


def _sqlite(parts: Parts) -> Values:
    """Return the versions; with their check-ins where one version stands for several."""
    versions = _of_builds(parts, lambda build: build.version)
    checkins = _of_builds(parts, lambda build: f"{build.version} ({build.source_id})")
    return checkins if len(set(checkins)) > len(set(versions)) else versions


def _options(parts: Parts) -> Values:
    known = [set(build.compile_options) for part in parts if (build := _build(part))]
    common = set.intersection(*known) if known else set()

    def own(build: SqliteBuild) -> str:
        extra = [option for option in build.compile_options if option not in common]
        return ", ".join(option for option in extra if option.partition("=")[0] in TELLING) or "none of these"

    return _if_known_to_differ(_of_builds(parts, own))


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
        busy_policy(part.case.settings) if _knows_driver(part) else None for part in parts
    ],
    "SQLite's version": _sqlite,
    "SQLite's options": _options,
    "settings such as page_size": _settings,
    "the call that syncs": _sync_call,
    "Python's version": lambda parts: [part.report.environment.host.python or None for part in parts],
    "sqlstress's version": _tool,
}
"""What reports may differ in without being incomparable → what it is in each."""
