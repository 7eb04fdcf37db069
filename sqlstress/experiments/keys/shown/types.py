"""Which type of identifier to take in a schema, by what the passes tell of time and by the space of each."""

from __future__ import annotations

from collections.abc import Mapping

from sqlstress.analysis.comparing import UNTOLD
from sqlstress.analysis.group import EQUAL, Tested
from sqlstress.analysis.wording import listing, rounded
from sqlstress.experiments.keys.shown.cells import Cell, ratio

PREFERRED = ("uuid7", "ulid-monotonic", "ulid", "uuid4")
"""Types that every process can make by itself. Of those that time and space don't tell apart the first is
advised: it is a standard, and says when a row was made."""


def advice(by_type: Mapping[str, Cell], tested: Tested) -> str:
    """Return what to take, and what it costs beside uuid4, which is there."""
    base, numbers, chosen = by_type["uuid4"], by_type.get("int"), _chosen(by_type, tested)
    parts = []
    if numbers and not tested.is_less(numbers.run, chosen.run):
        parts.append(f"take int where one database gives all ids ({_cost(numbers, base, tested)})")
    parts.append(f"{'else ' if parts else 'take '}{_named(chosen, base, tested)}")
    open_ones = [
        other.picks.id_type
        for id_type in PREFERRED
        if (other := by_type.get(id_type)) and other not in (chosen, base)
        if not tested.adds_little(chosen.run, other.run)
    ]
    doubt = f"; whether {listing(open_ones, 'or')} is quicker {UNTOLD}" if open_ones else ""
    return f"{', '.join(parts)}{doubt}"


def _chosen(by_type: Mapping[str, Cell], tested: Tested) -> Cell:
    """Return the first type to which no other is clearly better: in time beyond doubt, or in space."""
    own = [by_type[id_type] for id_type in PREFERRED if id_type in by_type]
    quick = [cell for cell in own if not any(_is_quicker(other, cell, tested) for other in own)]
    least = min((size for cell in quick if (size := cell.figure("file"))), default=0.0)
    return next((cell for cell in quick if (cell.figure("file") or 0.0) * (1 - EQUAL) <= least), quick[0])


def _is_quicker(cell: Cell, other: Cell, tested: Tested) -> bool:
    """Say whether a cell is quicker than another one by more than EQUAL, beyond doubt."""
    found = None if cell is other else tested.ratio(other.run, cell.run)
    return found is not None and found.low > 1 / (1 - EQUAL)


def _named(chosen: Cell, base: Cell, tested: Tested) -> str:
    if chosen is base:
        return "uuid4, beside which no other gains time or space"
    why = "" if tested.is_less(base.run, chosen.run) else ", which says when it was made"
    return f"{chosen.picks.id_type}{why} ({_cost(chosen, base, tested)})"


def _cost(cell: Cell, base: Cell, tested: Tested) -> str:
    """Say what a cell costs beside uuid4."""
    told, file = [_time(cell, base, tested)], ratio(cell, base, "file")
    told += [] if file is None else [f"{rounded(file, 2)} of its file"]
    return ", ".join(told)


def _time(cell: Cell, base: Cell, tested: Tested) -> str:
    found = tested.ratio(cell.run, base.run)
    if found is None or not (found.is_within(EQUAL) or found.is_above or found.is_below):
        return f"its time {UNTOLD} from uuid4's"
    if found.is_within(EQUAL):
        return "about uuid4's time"
    return f"{rounded(found.low, 2)} to {rounded(found.high, 2)} of uuid4's time"
