"""How a hunt is shown: what was tried, what was found, the smallest round that fails, and a command."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.study_parts import (
    PROVED,
    UNPROVED,
    WRONG,
    Conclusion,
    Part,
    counterexamples,
    ended_early,
)
from sqlstress.experiments.hunt import sentences
from sqlstress.experiments.hunt.proof import DAMAGED, STALE, SUMS, TORN, WRITES
from sqlstress.experiments.hunt.result import OWN_LOAD, Hunt, Witness
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
from sqlstress.show.blocks import Block, Bullets, Lines, Verdict
from sqlstress.show.shown import ResultShown, Tile, came_of
from sqlstress.statistics.units import NS_PER_S, plural, whole

SENTENCES = {
    WRITES: sentences.hunt_lost,
    SUMS: sentences.hunt_torn,
    STALE: sentences.hunt_stale,
    TORN: sentences.hunt_torn,
    DAMAGED: sentences.hunt_damaged,
    "integrity_check": sentences.hunt_damaged,
    "quick_check": sentences.hunt_damaged,
}
"""Sentence on a failed check, by its name; the user's checks have none."""
DONE = {WRITER: "commit", READER: "read", HOLDER: "long read", CHECKPOINTER: "checkpoint"}
EVERYWHERE = Schedule().pause_at


class HuntShown(ResultShown[Hunt]):
    """A hunt."""

    def part(self, result: Hunt) -> Part:
        return Part("hunt", conclusion(result), result.seconds, result.error, "hunt", "Hunt")

    def result_blocks(self, report: Report, result: Hunt) -> Iterator[Block]:
        about = [_what(report, result).text]
        if result.rounds:
            about.append(_tried(result).text)
        yield Lines(tuple(about))
        yield Verdict(conclusion(result, library(report, result)).finding.text)
        if told := tuple(finding.text for finding in findings(result)):
            yield Bullets(told)

    def tiles(self, result: Hunt) -> Iterator[Tile]:
        yield came_of(conclusion(result), "nothing found", "hunt")
        yield whole(result.rounds), "rounds", ""
        for kind, count in result.operations.items():
            yield whole(count), f"{DONE.get(kind, kind)}s", ""

    def progress(self, result: Hunt) -> str:
        return plural(result.rounds, "round")


def library(report: Report, hunt: Hunt) -> str:
    """Return the library that was hunted, with its version."""
    versions = [
        f"{one.library} {one.version}" for one in report.environment.builds if one.driver == hunt.driver
    ]
    return next(iter(versions), "SQLite")


def _what(report: Report, hunt: Hunt) -> Finding:
    return Finding(
        sentences.hunt_what,
        library=library(report, hunt),
        driver=hunt.driver,
        work=None if hunt.work == OWN_LOAD else hunt.work,
        round=hunt.round_s,
        pauses=hunt.pauses,
        seed=hunt.seed,
    )


def _tried(hunt: Hunt) -> Finding:
    own = [role for role in ROLES if role in hunt.operations]
    done = [Finding(sentences.hunt_done, count=hunt.operations[role], what=DONE[role]) for role in own]
    done += [
        Finding(sentences.hunt_calls, count=count, kind=kind)
        for kind, count in hunt.operations.items()
        if kind not in ROLES
    ]
    return Finding(
        sentences.hunt_tried, rounds=hunt.rounds, took_ns=hunt.seconds * NS_PER_S, done=tuple(done)
    )


def conclusion(hunt: Hunt, library: str = "SQLite") -> Conclusion:
    """Return whether something was found."""
    took_ns = hunt.seconds * NS_PER_S
    if hunt.found:
        failed = [check.name for check in hunt.found.verdict.checks if check.status == "failed"]
        if hunt.work != OWN_LOAD:
            return Conclusion(
                WRONG, Finding(sentences.hunt_work_failed, took_ns=took_ns, checks=tuple(failed))
            )
        what = tuple(dict.fromkeys(_wrong(name) for name in failed))
        return Conclusion(WRONG, Finding(sentences.hunt_found, took_ns=took_ns, library=library, what=what))
    if not hunt.rounds:
        return Conclusion(UNPROVED, Finding(sentences.hunt_no_round))
    return Conclusion(PROVED, Finding(sentences.hunt_nothing))


def _wrong(check: str) -> Finding:
    """Return what SQLite did where a check failed."""
    return (
        Finding(SENTENCES[check]) if check in SENTENCES else Finding(sentences.hunt_check_failed, name=check)
    )


def findings(hunt: Hunt) -> Iterator[Finding]:
    """Yield what must be known beside the verdict: examples, how often it fails, the command, the cause."""
    if hunt.found:
        yield from counterexamples(hunt.found.verdict)
        if hunt.known:
            yield Finding(sentences.hunt_wal_reset if hunt.work == OWN_LOAD else sentences.hunt_wal_reset_too)
        yield from _repeated(hunt, hunt.found)
    elif not hunt.checked:
        yield Finding(sentences.hunt_unchecked)
    yield from ended_early(hunt.error, plural(hunt.rounds, "round"))


def _repeated(hunt: Hunt, found: Witness) -> Iterator[Finding]:
    smallest = hunt.smallest
    if found.tries and not found.failed:
        yield Finding(sentences.hunt_once, tries=found.tries)
    elif found.tries:
        least = (
            Finding(sentences.hunt_again_smallest, failed=smallest.failed, tries=smallest.tries)
            if smallest
            else None
        )
        yield Finding(sentences.hunt_again, failed=found.failed, tries=found.tries, smallest=least)
    shown = smallest or found
    yield Finding(sentences.hunt_smallest if smallest else sentences.hunt_round, load=_load(shown))
    yield Finding(sentences.hunt_command, command=shlex.join(shown.command))


def _load(witness: Witness) -> Finding:
    case, schedule = witness.case, witness.schedule
    if schedule:
        each = Finding(sentences.hunt_pause, role="process", one_in=schedule.pause)
        pauses: tuple[Finding, ...] = (each,) if schedule.pause else ()
        points = schedule.pause_at if pauses and schedule.pause_at != EVERYWHERE else ()
        return Finding(sentences.hunt_work, processes=case.concurrency, pauses=pauses, points=points)
    spec = case.spec
    if not isinstance(spec, Round):
        return Finding(sentences.hunt_work, processes=case.concurrency)
    rates = {role: pause_rate(spec, role) for role, count in counts(spec).items() if count}
    pauses = tuple(
        Finding(sentences.hunt_pause, role=role, one_in=rate) for role, rate in rates.items() if rate
    )
    return Finding(
        sentences.hunt_load,
        writers=spec.writers,
        readers=spec.readers or None,
        holders=spec.holders or None,
        checkpointers=spec.checkpointers or None,
        modes=spec.checkpoint,
        journal=case.settings.journal_mode.upper(),
        autocheckpoint=case.settings.wal_autocheckpoint,
        pauses=pauses,
        points=spec.pause_at if pauses and spec.pause_at != EVERYWHERE else (),
    )
