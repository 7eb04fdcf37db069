"""What must hold in a round, as pure functions of what was seen: within one snapshot, and at the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlstress.experiments.hunt.spec import ACCOUNTS, EACH, filler_of
from sqlstress.statistics.units import plural, verb

WRITES, SUMS, STALE, TORN, DAMAGED = (
    "acknowledged writes",
    "sum of all accounts",
    "reads of acknowledged writes",
    "snapshots",
    "soundness while in use",
)
"""What is checked: nothing acknowledged is lost, no amount is, no read is older than what was acknowledged
before it began, each snapshot is one state, and SQLite meets no damage."""
TOTAL = ACCOUNTS * EACH


class Doubt(NamedTuple):
    """Something that can't be, as a process saw it."""

    check: str
    text: str


class Snapshot(NamedTuple):
    """What one read transaction saw, and what was known before it and after it; writers count from 0."""

    acknowledged: Sequence[int]
    """By writer, the last transaction that had been acknowledged before it began."""
    seen: Sequence[int]
    """By writer, the last transaction that the same process had read before."""
    counts: Mapping[int, int]
    """By writer, how many transactions it had committed."""
    sums: tuple[Any, Any]
    """The sum of all accounts, by the table and by an index."""
    parts: Mapping[int, int]
    """By writer, the last transaction that its own rows tell of."""
    log: Sequence[tuple[int, int, int, int]]
    """Where rows come and go: writer, first and last transaction in the log, rows of it."""
    again: Mapping[int, int]
    """The counts, read once more before it ended."""
    begun: Sequence[int]
    """By writer, the last transaction that had been begun when it had ended."""


def contradictions(snapshot: Snapshot) -> Iterator[Doubt]:
    """Yield what can't be in a snapshot."""
    acknowledged, seen, counts, sums, parts, log, again, begun = snapshot
    for writer, (known, read, most) in enumerate(zip(acknowledged, seen, begun, strict=True)):
        count, name = counts.get(writer, 0), f"writer {writer + 1}"
        if count < known:
            yield Doubt(
                STALE,
                f"a read found {plural(count, 'transaction')} of {name}, and {known:,} had been acknowledged "
                "before it began",
            )
        elif count < read:
            yield Doubt(
                STALE, f"a read found {plural(count, 'transaction')} of {name}, and an earlier read {read:,}"
            )
        if count > most:
            yield Doubt(
                TORN, f"a read found {plural(count, 'transaction')} of {name}, which had begun {most:,}"
            )
        if parts.get(writer, 0) != count:
            yield Doubt(
                TORN,
                f"one snapshot had {plural(count, 'transaction')} of {name}, and rows of transaction "
                f"{parts.get(writer, 0):,} as its last one",
            )
    for writer, low, high, rows in log:
        if high != counts.get(writer, 0) or rows != high - low + 1:
            yield Doubt(
                TORN,
                f"one snapshot had {plural(counts.get(writer, 0), 'transaction')} of writer {writer + 1}, "
                f"and its log {plural(rows, 'row')}, from transaction {low:,} to {high:,}",
            )
    if sums != (TOTAL, TOTAL):
        yield Doubt(
            TORN, f"one snapshot had a sum of {sums[0]} by table and {sums[1]} by index, instead of {TOTAL}"
        )
    if again != counts:
        yield Doubt(TORN, f"one read transaction saw two states: {dict(counts)}, then {dict(again)}")


class Writer(NamedTuple):
    """What one writer was told."""

    number: int
    """0 and up."""
    acknowledged: int
    """The last transaction that was acknowledged."""
    begun: int
    """The last one that it began: the same, or one whose end it was not told."""
    last: Mapping[int, int]
    """By own row, the last acknowledged transaction that wrote it; 0: none did."""


def losses(writer: Writer, counts: Mapping[int, Any], parts: Mapping[int, Any]) -> Iterator[str]:
    """Yield what the database has lost of a writer's transactions, from what it holds in the end.

    `counts` are its transactions by writer, `parts` the last transaction of each row.
    """
    number, acknowledged, begun, last = writer
    unknown = {begun} - {acknowledged}
    if counts.get(number) not in {acknowledged} | unknown:
        yield (
            f"{plural(acknowledged, 'transaction')} of writer {number + 1} "
            f"{verb(acknowledged, 'was', 'were')} acknowledged, "
            f"and the database has {_shown(counts.get(number))}"
        )
    for row, transaction in last.items():
        if parts.get(row) not in {transaction} | unknown:
            told = f"the last acknowledged write is transaction {transaction:,} of writer {number + 1}"
            untold = f"no write of writer {number + 1} was acknowledged"
            yield (
                f"row {row}: {told if transaction else untold}, and the row is of transaction "
                f"{_shown(parts.get(row))}"
            )


def mixtures(rows: Iterable[tuple[int, Any, Any]], size: int) -> Iterator[str]:
    """Yield which rows (number, transaction, filler) are not as one transaction has written them."""
    for row, transaction, filler in rows:
        is_one = isinstance(transaction, int) and 0 <= transaction < 1 << 32
        if not is_one or filler != filler_of(transaction, size):
            yield f"row {row}: it is of transaction {_shown(transaction)}, and its filler is of another"


def _shown(value: Any) -> str:
    """Return a value, which may be anything in a damaged database."""
    return f"{value:,}" if isinstance(value, int) else f"{value!r:.40}"
