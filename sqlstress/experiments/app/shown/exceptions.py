"""What the transactions of the application raised."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import plural, whole
from sqlstress.experiments.app.topics import EXCEPTION

SHOWN = 5
"""Kinds of exceptions that are told; the JSON report has them all."""
_MEANINGS = {
    "SQLITE_BUSY": "a lock was not free, at once or after the time-out",
    "SQLITE_BUSY_SNAPSHOT": (
        "what it had read was out of date when it wrote: no time-out helps, BEGIN IMMEDIATE does"
    ),
    "SQLITE_LOCKED": "another connection of the same process holds a lock",
    "SQLSTATE 40001": "others changed what it had read: it is to be begun again, as a whole",
    "SQLSTATE 40P01": "each waited for a lock of another's: it is to be begun again, as a whole",
    "SQLSTATE 55P03": "a lock was not free, at once or after lock_timeout",
}


def raised(group: Group) -> Iterator[Finding]:
    """Yield each kind of exception, the most frequent first, with what the first one said."""
    counts: dict[tuple[str, str, str], int] = {}
    examples: dict[tuple[str, str, str], str] = {}
    for run in group.runs:
        for trial in run.trials:
            for one in trial.sightings:
                if one.topic == EXCEPTION:
                    key = (one.what, one.traits.get("raised", ""), one.traits.get("transaction", ""))
                    counts[key] = counts.get(key, 0) + one.count
                    examples.setdefault(key, one.example)
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    for key, count in ranked[:SHOWN]:
        yield Finding("raised", f"{_told(*key)}, {plural(count, 'time')}{_example(examples[key], key[0])}")
    if len(ranked) > SHOWN:
        yield Finding(
            "raised", f"And {whole(len(ranked) - SHOWN)} kinds of exceptions more: see the JSON report."
        )


def _told(what: str, kind: str, transaction: str) -> str:
    through = f" (as {kind})" if kind and kind != what else ""
    return f"{transaction} raised {what}{through}" if transaction else f"Raised: {what}"


def _example(text: str, what: str) -> str:
    said = f": {text.removesuffix('.')}" if text else ""
    meaning = f" ({_MEANINGS[what]})" if what in _MEANINGS else ""
    return f"{said}{meaning}."
