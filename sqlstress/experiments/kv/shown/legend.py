"""One plain sentence that says what the columns of a table mean."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.group import Group
from sqlstress.display.blocks import Table
from sqlstress.display.verified import verified_legend
from sqlstress.experiment import face_of


def legend(group: Group, table: Table) -> str:
    """Explain the columns that the table has, in their order."""
    return f"{'; '.join(_parts(group, table))}."


def _parts(group: Group, table: Table) -> Iterator[str]:
    if face_of(group.case).whole_script:
        yield "TPS: pairs a second, each a set and a get of the same key"
    else:
        yield "TPS: transactions a second, each a get or a commit"
    headers = " ".join(table.headers)
    if "p50" in headers:
        yield "p50 and p99: half and 99% of the operations were as fast or faster"
    elif "p99" in headers:
        yield "p99: 99% of the operations were as fast or faster"
    if "fairness" in headers:
        yield "fairness (Jain's index): 1 when all processes got an equal share"
    if "longest wait" in headers:
        yield "longest wait: the slowest operation, one still pending at the end included"
    yield from verified_legend(group)
