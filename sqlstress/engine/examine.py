"""What the verdicts have in common: checks that read the data, and checks of what the workers read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlstress.engine.protocols import Outcome
from sqlstress.errors import SqlstressError, said
from sqlstress.report import Check
from sqlstress.report.problems import EXAMPLES

Found = TypeVar("Found", bound=Check | None)


def examined(name: str, check: Callable[[], Found]) -> Found | Check:
    """Run a check that reads the database; where that can't be read, it has failed.

    Raises what says nothing of the database: errors of ours, of the system, and of memory.
    """
    try:
        return check()
    except (SqlstressError, OSError, MemoryError):
        raise
    except Exception as error:
        return Check(name, "failed", 0, 1, (f"the database can't be read: {said(error)}",))


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
