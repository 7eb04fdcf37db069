"""Presentation of a hunt: rounds, verdict, smallest failing round, command to repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.study_parts import (
    PROVED,
    UNPROVED,
    WRONG,
    Conclusion,
    ReportPart,
    counterexamples,
    ended_early,
)
from sqlstress.analysis.wording import duration, processes
from sqlstress.experiments.hunt import sentences
from sqlstress.experiments.hunt.proof import DAMAGED, STALE, SUMS, TORN, WRITES
from sqlstress.experiments.hunt.result import BUILTIN_LOAD, Hunt, Witness
from sqlstress.experiments.hunt.sentences import Repeats
from sqlstress.experiments.hunt.spec import (
    CHECKPOINTER,
    HOLDER,
    READER,
    ROLES,
    WRITER,
    Round,
    Schedule,
    counts,
    pause_rate,
)
from sqlstress.report import Report
from sqlstress.show.blocks import Block, Bullets, Lines, VerdictLine
from sqlstress.show.shown import ResultShown, Tile, verdict_tile
from sqlstress.statistics.units import NS_PER_S, digits, format_duration, plural
from sqlstress.user_work.call_findings import lock_losses
from sqlstress.user_work.failures_view import failure_findings

_TORN, _DAMAGED = "returned an inconsistent snapshot", "damaged the database file"
_FAULTS = {
    WRITES: "lost acknowledged commits",
    SUMS: _TORN,
    STALE: "returned data older than a commit acknowledged before the read",
    TORN: _TORN,
    DAMAGED: _DAMAGED,
    "integrity_check": _DAMAGED,
    "quick_check": _DAMAGED,
}
"""Predicate for a sentence on SQLite, such as "damaged the database file", by failed check."""
DONE = {WRITER: "commit", READER: "read", HOLDER: "long read", CHECKPOINTER: "checkpoint"}
EVERYWHERE = Schedule().pause_at


class HuntShown(ResultShown[Hunt]):
    """Presenter (verdict, findings) of a hunt."""

    def part(self, result: Hunt) -> ReportPart:
        return ReportPart("hunt", conclusion(result), result.seconds, result.error, "hunt", "Hunt")

    def result_blocks(self, report: Report, result: Hunt) -> Iterator[Block]:
        about = [_heading(report, result)]
        if result.rounds:
            about.append(_rounds_text(result))
        yield Lines(tuple(about))
        yield VerdictLine(conclusion(result, library(report, result)).finding.text)
        causes = [finding for run in report.runs for finding in _causes(Group(run.case, (run,)))]
        if texts := tuple(finding.text for finding in (*causes, *findings(result))):
            yield Bullets(texts)

    def tiles(self, result: Hunt) -> Iterator[Tile]:
        yield verdict_tile(conclusion(result), "nothing found", "hunt")
        yield digits(result.rounds), "rounds", ""
        for kind, count in result.operations.items():
            yield digits(count), f"{DONE.get(kind, kind)}s", ""

    def progress(self, result: Hunt) -> str:
        return plural(result.rounds, "round")


def _causes(group: Group) -> Iterator[Finding]:
    yield from lock_losses(group)
    yield from failure_findings(group)


def library(report: Report, hunt: Hunt) -> str:
    """Return name and version of the tested library, such as "SQLite 3.45.1"."""
    versions = [
        f"{build.library} {build.version}"
        for build in report.environment.builds
        if build.driver == hunt.driver
    ]
    return next(iter(versions), "SQLite")


def _heading(report: Report, hunt: Hunt) -> str:
    work = "" if hunt.work == BUILTIN_LOAD else f" of {hunt.work}"
    pauses = "processes pause at random calls inside SQLite" if hunt.pauses else "without pauses"
    return (
        f"Hunt{work} with {library(report, hunt)}, driver {hunt.driver}; rounds of "
        f"{format_duration(hunt.round_s)}, {pauses}; seed {hunt.seed}."
    )


def _rounds_text(hunt: Hunt) -> str:
    counts_of_kinds = [
        f"{digits(hunt.operations[role])} {DONE[role]}s" for role in ROLES if role in hunt.operations
    ]
    counts_of_kinds += [
        f"{plural(count, 'call')} of {kind}" for kind, count in hunt.operations.items() if kind not in ROLES
    ]
    took = duration(hunt.seconds * NS_PER_S)
    return f"Tried {plural(hunt.rounds, 'round')} in {took}: {', '.join(counts_of_kinds)}."


def conclusion(hunt: Hunt, library: str = "SQLite") -> Conclusion:
    """Return the verdict: the failed checks, or that no round failed."""
    took_ns = hunt.seconds * NS_PER_S
    if hunt.found:
        failed = [check.name for check in hunt.found.verdict.checks if check.status == "failed"]
        if hunt.work != BUILTIN_LOAD:
            return Conclusion(WRONG, Finding(sentences.hunt_found, took_ns=took_ns, wrong=tuple(failed)))
        wrong = tuple(dict.fromkeys(_FAULTS.get(name, f"failed the check {name}") for name in failed))
        return Conclusion(WRONG, Finding(sentences.hunt_found, took_ns=took_ns, wrong=wrong, library=library))
    if not hunt.rounds:
        return Conclusion(UNPROVED, Finding(sentences.hunt_no_round))
    return Conclusion(PROVED, Finding(sentences.hunt_nothing))


def findings(hunt: Hunt) -> Iterator[Finding]:
    """Yield findings after the verdict: examples, probable cause, repetitions, command."""
    if hunt.found:
        yield from counterexamples(hunt.found.verdict)
        if hunt.known:
            yield Finding(sentences.hunt_wal_reset, probable=hunt.work == BUILTIN_LOAD)
        yield from _repetitions(hunt, hunt.found)
    elif not hunt.checked:
        yield Finding(sentences.hunt_unchecked)
    yield from ended_early(hunt.error, plural(hunt.rounds, "round"))


def _repetitions(hunt: Hunt, first: Witness) -> Iterator[Finding]:
    smallest = hunt.smallest
    if first.tries:
        least = Repeats(smallest.failed, smallest.tries) if smallest else None
        yield Finding(sentences.hunt_again, round=Repeats(first.failed, first.tries), smallest=least)
    witness = smallest or first
    yield Finding(sentences.hunt_round, load=_load(witness), smallest=bool(smallest))
    yield Finding(sentences.hunt_command, command=shlex.join(witness.command))


def _load(witness: Witness) -> str:
    """Return the load of a round, such as "8 writers; journal WAL; pauses: each writer at 1 of 100 calls"."""
    case, spec, schedule = witness.case, witness.case.spec, witness.schedule
    if schedule:
        rates = {"process": schedule.pause}
        return processes(case.concurrency) + _pauses(rates, schedule.pause_at)
    if not isinstance(spec, Round):
        return processes(case.concurrency)
    parts = [
        plural(spec.writers, "writer"),
        plural(spec.readers, "reader") if spec.readers else "",
        plural(spec.holders, "long reader") if spec.holders else "",
        f"{plural(spec.checkpointers, 'checkpointer')} ({', '.join(spec.checkpoint)})"
        if spec.checkpointers
        else "",
    ]
    journal = f"journal {case.settings.journal_mode.upper()}"
    if case.settings.wal_autocheckpoint is not None:
        journal += f", wal_autocheckpoint {digits(case.settings.wal_autocheckpoint)}"
    rates = {role: pause_rate(spec, role) for role, count in counts(spec).items() if count}
    return f"{', '.join(filter(None, parts))}; {journal}{_pauses(rates, spec.pause_at)}"


def _pauses(rates: Mapping[str, int], points: Sequence[str]) -> str:
    """Return text such as "; pauses: each writer at 1 of 100 calls"; empty without pauses.

    `rates` has a number N by role, such as writer: a process with this role pauses at one in N calls, or
    never if N is 0. `points` are kinds of VFS calls.
    """
    pauses = [f"each {role} at 1 of {digits(rate)} calls" for role, rate in rates.items() if rate]
    if not pauses:
        return ""
    where = f" (at {', '.join(points)})" if points and points != EVERYWHERE else ""
    return f"; pauses: {', '.join(pauses)}{where}"
