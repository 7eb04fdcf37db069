"""Is what a power cut left of a file what the file held after one of its transactions, and after which?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlstress.experiments.power_loss.transactions import Contents, Transaction, contents_after
from sqlstress.report.power_failure import CORRUPT, GOOD, KINDS, LOST, TORN


class Span(NamedTuple):
    """When a transaction was carried out, as numbers of operations of the disk that came before."""

    begun: int
    acknowledged: int


class Remains(NamedTuple):
    """What SQLite found in a file."""

    contents: Contents | None
    """Every row; none when the table isn't there; None when it can't be read."""
    complaints: tuple[str, ...] = ()
    """What SQLite complained of."""


class Finding(NamedTuple):
    """What is to be said of a file."""

    kind: str
    """One of KINDS."""
    lost: int = 0
    """Acknowledged transactions that are gone."""
    text: str = ""
    """What is wrong, in a sentence; empty when nothing is."""


class History:
    """A file's transactions, in their order, and when each was begun and acknowledged."""

    def __init__(self, name: str, transactions: Sequence[Transaction]) -> None:
        self.name, self.transactions = name, transactions
        self.spans: list[Span] = []
        """Of the transactions carried out by now."""
        self._stages = contents_after(transactions)
        self._numbers = {contents: number for number, contents in enumerate(self._stages)}

    def acknowledged(self, cut: int) -> int:
        """Return how many transactions were acknowledged when so many operations had been done."""
        return sum(span.acknowledged <= cut for span in self.spans)

    def begun(self, cut: int) -> int:
        """Return how many had begun by then."""
        return sum(span.begun < cut for span in self.spans)

    def judge(self, remains: Remains, cut: int) -> Finding:
        """Say what is to be said of the file, if power was cut after so many operations."""
        if remains.contents is None or remains.complaints:
            return Finding(CORRUPT, text=f"{self.name}: {'; '.join(remains.complaints)}")
        number = self._numbers.get(remains.contents)
        if number is None or number > self.begun(cut):
            return Finding(TORN, text=f"{self.name}: {self._told(remains.contents)}")
        acknowledged = self.acknowledged(cut)
        if number < acknowledged:
            missing = _numbered(number + 1, acknowledged)
            return Finding(LOST, acknowledged - number, f"{self.name}: {missing} acknowledged and is gone")
        return Finding(GOOD)

    def _told(self, contents: Contents) -> str:
        """Return why a file never held this: a row that isn't as the newest transaction in it left it."""
        versions = [row.version for row in contents if isinstance(row.version, int)]
        newest = max(versions, default=0)
        if not 0 <= newest < len(self._stages):
            return f"there is a row of transaction {newest}, which nobody made"
        found, left = ({row.id: row for row in rows} for rows in (contents, self._stages[newest]))
        wrong = [key for key in sorted(found.keys() | left.keys()) if found.get(key) != left.get(key)]
        if not wrong:
            return f"transaction {newest} is there, which had not begun"
        there = f"transaction {newest} is there, but not all that it left: row {wrong[0]}"
        row = found.get(wrong[0])
        if row is None:
            return f"{there} is gone"
        return f"{there} is of transaction {row.version!r:.40}"


def _numbered(first: int, last: int) -> str:
    return f"transaction {first} was" if first == last else f"each of the transactions {first} to {last} was"


def worst(findings: Iterable[Finding]) -> Finding:
    """Return what is to be said of several files together: the worst of it, and all that was lost."""
    found = sorted(findings, key=lambda finding: KINDS.index(finding.kind))
    return found[-1]._replace(lost=sum(finding.lost for finding in found))
