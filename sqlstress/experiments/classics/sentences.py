"""Sentences on findings in reports of `sqlstress methods`, `keys` and `cycles`, such as the fastest cases.

A case is a row of the table in a report. Cases are compared only within one part of the table. For example,
`sqlstress keys` has a part for each schema, and ranks the types of ids in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlstress.analysis.wording import duration, listing, with_interval
from sqlstress.statistics.compare import Ratio
from sqlstress.statistics.units import digits, plural


class Fastest(NamedTuple):
    """Fastest cases (rows) of a part of a report's table, such as one schema, and their speed."""

    names: Sequence[str]
    """Names of the cases; several if the tests do not show that one of them is the fastest."""
    base: str
    """Name of the case with which the fastest case is compared, such as "1b1" (one row per statement)."""
    ratio: Ratio | None = None
    """Rate of the fastest case divided by that of `base`; None if unclear, or if `base` is the fastest."""
    equal: bool = False
    """Whether `names` has several cases, and tests show that their rates are about equal."""
    unclear: bool = False
    """Whether `names` has several cases, and the trials vary too much to tell which of them is fastest."""
    without: str = ""
    """Method that `names` leaves out, because it suits few applications: "SPC"; "" if none is left out."""


def _lead(lead: Fastest) -> str:
    text = f"without {lead.without}: {listing(lead.names)}" if lead.without else listing(lead.names)
    if lead.equal:
        text += " (about equal)"
    if lead.unclear:
        text += " (cannot tell which is fastest)"
    return f"{text}, {with_interval(lead.ratio, f'as fast as {lead.base}')}" if lead.ratio else text


def fastest(*, part: str = "", leads: Sequence[Fastest]) -> str:
    """Name the fastest cases (rows) of a part of the table; of the whole table if `part` is "".

    `leads[0]` has the fastest of all cases. If the method SPC is among them, which makes rows by a join and
    suits few applications, `leads[1]` has the fastest cases without SPC.
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
    """List cycles (insert, delete all, insert again) with a checkpoint. Report if the slowest has one."""
    seen = "no checkpoint was seen"
    if cycles:
        seen = f"a checkpoint was seen in cycle {listing(list(map(digits, cycles)))}"
    return (
        f"{where}: {seen}. The slowest cycle except the first is {digits(slowest)} ({duration(slowest_ns)}; "
        f"median {duration(median_ns)}): {'a' if slowest in cycles else 'not a'} checkpoint."
    )
