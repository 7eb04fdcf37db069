"""The column of every table that says whether the data was proved right, and what it means."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.group import Group
from sqlstress.display.blocks import Column
from sqlstress.display.figures import MISSING, UNKNOWN
from sqlstress.report import Run

COLUMN = Column("verified", ("veri-", "fied"), align="left")

FAILED = "FAILED"
_WORDS = {"ok": "ok", "failed": FAILED, "skipped": MISSING, "unknown": UNKNOWN}
_MEANINGS = {
    "failed": "the data is wrong",
    "unknown": "it could not be decided",
    "skipped": "not checked",
}


def verified_cell(run: Run) -> str:
    """Return what is said of a run."""
    return _WORDS.get(run.verdict.status, UNKNOWN)


def verified_legend(group: Group, ok: str = "no acknowledged write was lost") -> Iterator[str]:
    """Yield what the words in the column mean, as far as the group has them; `ok` is what was proved."""
    meanings = {"ok": ok, **_MEANINGS}
    statuses = {run.verdict.status for run in group.runs}
    told = [f"{_WORDS[status]} = {text}" for status, text in meanings.items() if status in statuses]
    if told:
        yield f"verified: {', '.join(told)}"
