"""How a hunt is shown: what was tried, what was found, the smallest round that fails, and a command."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from sqlstress.analysis.finding import (
    PROVED,
    UNPROVED,
    WRONG,
    Conclusion,
    Finding,
    Part,
    counterexamples,
    ended_early,
)
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
from sqlstress.show.phrases import phrase
from sqlstress.show.shown import ResultShown, Tile, came_of
from sqlstress.statistics.units import NS_PER_S, plural, whole

CODES = {
    WRITES: "hunt-lost",
    SUMS: "hunt-torn",
    STALE: "hunt-stale",
    TORN: "hunt-torn",
    DAMAGED: "hunt-damaged",
    "integrity_check": "hunt-damaged",
    "quick_check": "hunt-damaged",
}
"""Check → what it has found where it failed; others are the user's."""
DONE = {WRITER: "commit", READER: "read", HOLDER: "long read", CHECKPOINTER: "checkpoint"}
EVERYWHERE = Schedule().pause_at


class HuntShown(ResultShown[Hunt]):
    """A hunt."""

    def part(self, result: Hunt) -> Part:
        return Part("hunt", conclusion(result), result.seconds, result.error, "hunt", "Hunt")

    def result_blocks(self, report: Report, result: Hunt) -> Iterator[Block]:
        about = [phrase(_what(report, result))]
        if result.rounds:
            about.append(phrase(_tried(result)))
        yield Lines(tuple(about))
        yield Verdict(phrase(conclusion(result, library(report, result)).finding))
        if told := tuple(phrase(finding) for finding in findings(result)):
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
        "hunt-what",
        library=library(report, hunt),
        driver=hunt.driver,
        work=None if hunt.work == OWN_LOAD else hunt.work,
        round=hunt.round_s,
        pauses=hunt.pauses,
        seed=hunt.seed,
    )


def _tried(hunt: Hunt) -> Finding:
    own = [role for role in ROLES if role in hunt.operations]
    done = [Finding("hunt-done", count=hunt.operations[role], what=DONE[role]) for role in own]
    done += [
        Finding("hunt-calls", count=count, kind=kind)
        for kind, count in hunt.operations.items()
        if kind not in ROLES
    ]
    return Finding("hunt-tried", rounds=hunt.rounds, took_ns=hunt.seconds * NS_PER_S, done=tuple(done))


def conclusion(hunt: Hunt, library: str = "SQLite") -> Conclusion:
    """Return whether something was found."""
    took_ns = hunt.seconds * NS_PER_S
    if hunt.found:
        failed = [check.name for check in hunt.found.verdict.checks if check.status == "failed"]
        if hunt.work != OWN_LOAD:
            return Conclusion(WRONG, Finding("hunt-work-failed", took_ns=took_ns, checks=tuple(failed)))
        what = tuple(dict.fromkeys(_wrong(name) for name in failed))
        return Conclusion(WRONG, Finding("hunt-found", took_ns=took_ns, library=library, what=what))
    if not hunt.rounds:
        return Conclusion(UNPROVED, Finding("hunt-no-round"))
    return Conclusion(PROVED, Finding("hunt-nothing"))


def _wrong(check: str) -> Finding:
    """Return what SQLite did where a check failed."""
    return Finding(CODES[check]) if check in CODES else Finding("hunt-check-failed", name=check)


def findings(hunt: Hunt) -> Iterator[Finding]:
    """Yield what must be known beside the verdict: examples, how often it fails, the command, the cause."""
    if hunt.found:
        yield from counterexamples(hunt.found.verdict)
        if hunt.known:
            yield Finding("hunt-wal-reset" if hunt.work == OWN_LOAD else "hunt-wal-reset-too")
        yield from _repeated(hunt, hunt.found)
    elif not hunt.checked:
        yield Finding("hunt-unchecked")
    yield from ended_early(hunt.error, plural(hunt.rounds, "round"))


def _repeated(hunt: Hunt, found: Witness) -> Iterator[Finding]:
    smallest = hunt.smallest
    if found.tries and not found.failed:
        yield Finding("hunt-once", tries=found.tries)
    elif found.tries:
        least = (
            Finding("hunt-again-smallest", failed=smallest.failed, tries=smallest.tries) if smallest else None
        )
        yield Finding("hunt-again", failed=found.failed, tries=found.tries, smallest=least)
    shown = smallest or found
    yield Finding("hunt-smallest" if smallest else "hunt-round", load=_load(shown))
    yield Finding("hunt-command", command=shlex.join(shown.command))


def _load(witness: Witness) -> Finding:
    case, schedule = witness.case, witness.schedule
    if schedule:
        each = Finding("hunt-pause", role="process", one_in=schedule.pause)
        pauses: tuple[Finding, ...] = (each,) if schedule.pause else ()
        points = schedule.pause_at if pauses and schedule.pause_at != EVERYWHERE else ()
        return Finding("hunt-work", processes=case.concurrency, pauses=pauses, points=points)
    spec = case.spec
    if not isinstance(spec, Round):
        return Finding("hunt-work", processes=case.concurrency)
    rates = {role: pause_rate(spec, role) for role, count in counts(spec).items() if count}
    pauses = tuple(Finding("hunt-pause", role=role, one_in=rate) for role, rate in rates.items() if rate)
    return Finding(
        "hunt-load",
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
