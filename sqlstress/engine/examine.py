"""What the verdicts have in common: checks of the files, and of what the workers read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from sqlstress.engine.protocols import Outcome
from sqlstress.errors import SqlstressError, said
from sqlstress.report import Check, Verdict
from sqlstress.report.case import Case
from sqlstress.report.problems import EXAMPLES, Tally
from sqlstress.system.pulse import Pulse
from sqlstress.targets import DRY
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.drivers.base import Row
from sqlstress.targets.sqlite.integrity import integrity, schema


def unverified(case: Case) -> Verdict:
    """Return the verdict of a case that is not verified, with the reason."""
    reason = "the dry driver stores nothing" if case.driver == DRY else "--verify none"
    return Verdict((Check("verification", "skipped", note=reason),))


def examined(name: str, check: Callable[[], Check]) -> Check:
    """Run a check that reads the database; one that SQLite refuses to read has failed.

    Raises what says nothing of the database: errors of ours, of the system, and of memory.
    """
    try:
        return check()
    except (SqlstressError, OSError, MemoryError):
        raise
    except Exception as error:
        return Check(name, "failed", 0, 1, (f"the database can't be read: {said(error)}",))


def integrity_check(case: Case, folder: Path, pulse: Pulse) -> Check:
    """Run quick_check or integrity_check on every file."""
    name = "integrity_check" if case.verify == "full" else "quick_check"
    tally = Tally(name)
    for path in files.paths(case, folder):
        pulse()
        tally.checked += 1
        for complaint in _complaints(case, path, pulse):
            tally.problem(f"{path.name}: {complaint}")
    return tally.check()


def _complaints(case: Case, path: Path, pulse: Pulse) -> list[str]:
    return integrity(case, path, pulse) if path.exists() else ["the file is gone"]


def schema_check(case: Case, folder: Path, created: Sequence[Row], pulse: Pulse) -> Check:
    """See that every file defines what was created when the trial began, and nothing else.

    SQLite compares no definition with anything: one that has been changed is only another one.
    """
    tally = Tally("schema")
    for path in files.paths(case, folder):
        pulse()
        found = schema(case, path)
        tally.checked += len(created)
        for complaint in schema_complaints(created, found):
            tally.problem(f"the schema of {path.name} {complaint}")
    return tally.check()


def schema_complaints(created: Sequence[Row], found: Sequence[Row]) -> list[str]:
    """Say what a schema lacks, and what it holds besides; what has been changed is both."""
    lacks = [f"lacks {_definition(row)}" for row in created if row not in found]
    return lacks + [f"holds {_definition(row)}, which nobody created" for row in found if row not in created]


def _definition(row: Row) -> str:
    number, kind, name, table, sql = row
    return f"definition {number}, the {kind} {name} of {table}: {sql!r:.160}"


def reading_checks(outcomes: Sequence[Outcome]) -> list[Check]:
    """Add up what the workers found wrong in what they read."""
    found = [outcome.findings for outcome in outcomes if outcome.findings]
    reads = Check(
        "values read",
        "failed" if any(one.bad_reads for one in found) else "ok" if found else "skipped",
        sum(one.reads_checked for one in found),
        sum(one.bad_reads for one in found),
        tuple(text for one in found for text in one.bad_read_examples)[:EXAMPLES],
    )
    if not any(one.pairs_checked for one in found):
        return [reads]
    torn = Check(
        "torn transactions",
        "failed" if any(one.torn for one in found) else "ok",
        sum(one.pairs_checked for one in found),
        sum(one.torn for one in found),
        tuple(text for one in found for text in one.torn_examples)[:EXAMPLES],
    )
    return [reads, torn]
