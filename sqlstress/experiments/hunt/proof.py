"""Checks of a round: of each snapshot that a process reads, and of the final database.

A transaction is acknowledged when its COMMIT has returned without an error.
"""

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
"""Names of the checks.

WRITES: no acknowledged write is lost. SUMS: no amount is lost. STALE: a read sees all commits that were
acknowledged before it began. TORN: a snapshot is the state after a commit, not a mixture of several states.
DAMAGED: SQLite reports no damage.
"""
TOTAL = ACCOUNTS * EACH
"""Sum of all accounts, which no transaction changes."""


class Violation(NamedTuple):
    """Observation that violates a check. `check` is the name of the check, `text` is for the report."""

    check: str
    text: str


class SnapshotState(NamedTuple):
    """Results of a read transaction, and the progress of each writer before and after it.

    Writers are numbered from 0, the transactions of each writer from 1.
    """

    acknowledged: Sequence[int]
    """Last transaction acknowledged before the read began, by writer."""
    seen: Sequence[int]
    """Last transaction that the reading process had seen before, by writer."""
    counts: Mapping[int, int]
    """Number of committed transactions in the snapshot, by writer."""
    sums: tuple[Any, Any]
    """Sum of all accounts, read from the table and from an index."""
    parts: Mapping[int, int]
    """Last transaction that wrote any of the writer's rows in the table `part`, by writer."""
    log: Sequence[tuple[int, int, int, int]]
    """Rows of the table `log`, by writer: (writer, first and last transaction, number of rows).

    Empty if the option --churn is off, because transactions then insert no rows into this table.
    """
    again: Mapping[int, int]
    """Number of committed transactions by writer, read again at the end of the read transaction."""
    begun: Sequence[int]
    """Last transaction that had begun when the read ended, by writer."""


def contradictions(snapshot: SnapshotState) -> Iterator[Violation]:
    """Yield the violations of checks that a snapshot shows."""
    acknowledged, seen, counts, sums, parts, log, again, last_begun = snapshot
    for writer, (least, read_before, most) in enumerate(zip(acknowledged, seen, last_begun, strict=True)):
        count, name = counts.get(writer, 0), f"writer {writer + 1}"
        if count < least:
            yield Violation(
                STALE,
                f"a read found {plural(count, 'transaction')} of {name}, and {least:,} had been acknowledged "
                "before it began",
            )
        elif count < read_before:
            yield Violation(
                STALE,
                f"a read found {plural(count, 'transaction')} of {name}, and an earlier read {read_before:,}",
            )
        if count > most:
            yield Violation(
                TORN, f"a read found {plural(count, 'transaction')} of {name}, which had begun {most:,}"
            )
        if parts.get(writer, 0) != count:
            yield Violation(
                TORN,
                f"one snapshot had {plural(count, 'transaction')} of {name}, and rows of transaction "
                f"{parts.get(writer, 0):,} as its last one",
            )
    for writer, low, high, rows in log:
        if high != counts.get(writer, 0) or rows != high - low + 1:
            yield Violation(
                TORN,
                f"one snapshot had {plural(counts.get(writer, 0), 'transaction')} of writer {writer + 1}, "
                f"and its log {plural(rows, 'row')}, from transaction {low:,} to {high:,}",
            )
    if sums != (TOTAL, TOTAL):
        yield Violation(
            TORN, f"one snapshot had a sum of {sums[0]} by table and {sums[1]} by index, instead of {TOTAL}"
        )
    if again != counts:
        yield Violation(TORN, f"one read transaction saw two states: {dict(counts)}, then {dict(again)}")


class Writer(NamedTuple):
    """Progress of one writer: acknowledged and begun transactions, which are numbered from 1."""

    number: int
    """Number of the writer, from 0."""
    acknowledged: int
    """Number of the last acknowledged transaction."""
    begun: int
    """Number of the last transaction that began, which may be committed without an acknowledgement."""
    last: Mapping[int, int]
    """Last acknowledged transaction that wrote each of the writer's rows; 0 if none wrote it."""


def losses(writer: Writer, counts: Mapping[int, Any], parts: Mapping[int, Any]) -> Iterator[str]:
    """Yield text on each lost transaction of a writer, from the final contents of the database.

    `counts` has the number of committed transactions by writer. `parts` has the last transaction that wrote a
    row, by number of the row.
    """
    number, acknowledged, last_begun, last = writer
    unknown = {last_begun} - {acknowledged}
    if counts.get(number) not in {acknowledged} | unknown:
        yield (
            f"{plural(acknowledged, 'transaction')} of writer {number + 1} "
            f"{verb(acknowledged, 'was', 'were')} acknowledged, "
            f"and the database has {_as_text(counts.get(number))}"
        )
    for row, transaction in last.items():
        if parts.get(row) not in {transaction} | unknown:
            write_text = f"the last acknowledged write is transaction {transaction:,} of writer {number + 1}"
            nothing_text = f"no write of writer {number + 1} was acknowledged"
            yield (
                f"row {row}: {write_text if transaction else nothing_text}, and the row is of transaction "
                f"{_as_text(parts.get(row))}"
            )


def mixtures(rows: Iterable[tuple[int, Any, Any]], size: int) -> Iterator[str]:
    """Yield text on each row (number, transaction, filler) with the filler of another transaction.

    Each transaction writes its own filler (see `filler_of`), of `size` bytes, into a row.
    """
    for row, transaction, filler in rows:
        is_valid = isinstance(transaction, int) and 0 <= transaction < 1 << 32
        if not is_valid or filler != filler_of(transaction, size):
            yield f"row {row}: it is of transaction {_as_text(transaction)}, and its filler is of another"


def _as_text(value: Any) -> str:
    """Return a value as text. In a damaged database, the value may have any type."""
    return f"{value:,}" if isinstance(value, int) else f"{value!r:.40}"
