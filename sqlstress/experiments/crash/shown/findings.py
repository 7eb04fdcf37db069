"""What a crash test says, in sentences: the verdict, its limits, and what was found wrong."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.finding import PROVED, UNPROVED, WRONG, Finding
from sqlstress.analysis.wording import listing, plural, whole
from sqlstress.experiments.crash.result import ACKNOWLEDGED, INTEGRITY, SURVIVORS, WHOLE, Kills
from sqlstress.report import Check

LIMITS = (
    "That is about processes that die, and says nothing about power loss: what a dead process has written "
    "the system still writes out, even with synchronous=OFF. --power tries what a power cut can leave."
)
_NO_JOURNAL = "journal_mode={} keeps nothing on disk to roll back with: use WAL or DELETE."
_SHOWN = 3


def kill_verdict(kills: Kills) -> Finding:
    """Return in a sentence or two whether everything survived the death of its writers."""
    if kills.verdict.status == "failed":
        wrong = listing([_wrong(check) for check in kills.verdict.checks if check.status == "failed"])
        return Finding(WRONG, f"FAILED: after {plural(kills.kills, 'kill')} {wrong}.{_advice(kills)}")
    if not kills.acknowledged:
        return Finding(UNPROVED, "Nothing is proved: no transaction was acknowledged before its writer died.")
    return Finding(
        PROVED,
        f"Nothing was lost: after {plural(kills.kills, 'kill')} all of {whole(kills.acknowledged)} "
        "acknowledged transactions were there, none was torn, and integrity_check found nothing. "
        f"{LIMITS}",
    )


def _wrong(check: Check) -> str:
    """Return what a failed check has found, as a clause."""
    times = "once" if check.problems == 1 else f"{whole(check.problems)} times"
    were = "was" if check.problems == 1 else "were"
    return {
        ACKNOWLEDGED: f"{plural(check.problems, 'transaction')} {were} not there as acknowledged",
        WHOLE: f"{plural(check.problems, 'record')} {were} not wholly as the log says",
        INTEGRITY: f"integrity_check complained {times}",
        SURVIVORS: f"{times} the others did not go on after a kill",
    }.get(check.name, f"{check.name} failed")


def _advice(kills: Kills) -> str:
    mode = kills.case.settings.journal_mode
    return f" {_NO_JOURNAL.format(mode.upper())}" if mode in ("off", "memory") else ""


def findings(kills: Kills) -> Iterator[Finding]:
    """Yield what must be known beside the verdict: counter-examples, and why a test ended early."""
    for check in kills.verdict.checks:
        if check.status == "failed":
            yield Finding("counterexamples", f"{check.name}: {'; '.join(check.counterexamples[:_SHOWN])}.")
    if kills.error:
        yield Finding("ended-early", f"Ended after {rounds(kills)}: {kills.error.removesuffix('.')}.")


def rounds(kills: Kills) -> str:
    """Return how far a test has come: "3 of 100 rounds"."""
    return f"{whole(kills.rounds)} of {whole(kills.planned)} rounds"
