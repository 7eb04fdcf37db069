"""Sentences in the reports of methods, keys and cycles. Their parameters are the facts of a finding.

A part of a table has the cases that are compared with each other, such as the types of ids with one schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlstress.analysis.wording import duration, listing, with_interval
from sqlstress.statistics.compare import Ratio
from sqlstress.statistics.units import digits, plural


class Fastest(NamedTuple):
    """Fastest cases of a part of a table, for the sentence `fastest`."""

    names: Sequence[str]
    """Names of the cases; several if the tests do not show that one of them is the fastest."""
    base: str
    """Name of the case with which the fastest case is compared, such as "1b1"."""
    ratio: Ratio | None = None
    """Rate of the fastest case / rate of the base; None if inconclusive, or if `names` contains the base."""
    equal: bool = False
    """Whether `names` has several cases, and tests show that their rates are about equal."""
    unclear: bool = False
    """Whether `names` has several cases, and noise hides which of them is fastest."""
    without: str = ""
    """First word of the names of cases that were left out, such as "SPC"; empty if none were."""


def _lead(lead: Fastest) -> str:
    text = f"without {lead.without}: {listing(lead.names)}" if lead.without else listing(lead.names)
    if lead.equal:
        text += " (about equal)"
    if lead.unclear:
        text += " (cannot tell which is fastest)"
    return f"{text}, {with_interval(lead.ratio, f'as fast as {lead.base}')}" if lead.ratio else text


def fastest(*, part: str = "", leads: Sequence[Fastest]) -> str:
    """Name the fastest cases of a part of a table.

    The first item of `leads` has the fastest of all cases. If only some applications can use one of these,
    such as the method SPC, a second item has the fastest of the other cases.
    """
    return f"Fastest{f' for {part}' if part else ''}: {'; '.join(map(_lead, leads))}."


def method_limit(
    *, phase: str, rows: int, method: str, drivers: Sequence[str], reason: str, instead: str
) -> str:
    where = f"{phase} of {plural(rows, 'row')} by {method} ({listing(drivers)})"
    return f"LIMIT for {where}: {reason}. Use {instead} instead."


def space_unsplit() -> str:
    return (
        "The space is not split by table and index, because this Python's SQLite lacks dbstat. Install apsw "
        "for it: python -m pip install apsw."
    )


def checkpoint(
    *, where: str, cycles: Sequence[int], slowest: int, slowest_ns: float, median_ns: float
) -> str:
    """Report the numbers of the cycles with a checkpoint, and whether the slowest cycle had a checkpoint."""
    seen = "no checkpoint was seen"
    if cycles:
        seen = f"a checkpoint was seen in cycle {listing(list(map(digits, cycles)))}"
    return (
        f"{where}: {seen}. The slowest cycle except the first is {digits(slowest)} ({duration(slowest_ns)}; "
        f"median {duration(median_ns)}): {'a' if slowest in cycles else 'not a'} checkpoint."
    )
