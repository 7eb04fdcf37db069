"""Barriers: the differences for which a ratio of two figures would mean nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sqlstress.analysis.comparison.difference import Difference, Parts, Values
from sqlstress.analysis.comparison.matching import Part, may_be_unknown
from sqlstress.analysis.durability import Durability, durability_of
from sqlstress.analysis.wording import listing, whole
from sqlstress.experiment import face_of
from sqlstress.report.case import Case


def barriers(parts: Parts) -> Iterator[Difference]:
    """Yield what must be the same, and what it is in each part."""
    letters = [part.letter for part in parts]
    work = [face_of(part.case).does or part.case.workload for part in parts]
    yield _barrier("work", "the work", work, letters)
    yield _barrier("load", "the load", _load(parts), letters)
    for name, (clause, figure) in may_be_unknown(parts[0].case).items():
        yield _barrier(name, clause, _told_if_unknown(parts, figure), letters)
    yield _barrier("durability", "what a commit waits for", [_durability(part) for part in parts], letters)


def _barrier(subject: str, clause: str, values: Values, letters: Sequence[str]) -> Difference:
    def reason(place: int) -> str | None:
        unknown = [letters[i] for i in (0, place) if values[i] is None]
        if unknown:
            return f"{clause} is not known of {listing(unknown)}"
        return f"{clause} differs" if values[place] != values[0] else None

    return Difference(subject, tuple(values), (None, *map(reason, range(1, len(values)))))


def _load(parts: Parts) -> list[str]:
    """Return what differs in the loads of parts that do the same work."""
    first = parts[0].case
    if any(part.case.workload != first.workload for part in parts):
        return [""] * len(parts)
    return face_of(first).show().loads([part.case for part in parts])


def _told_if_unknown(parts: Parts, figure: Callable[[Case], int | None]) -> Values:
    """Return what cases were matched without, since of some it is not known."""
    found = [
        sorted({value for run in part.measured() if (value := figure(run.case)) is not None})
        for part in parts
    ]
    if all(map(all, found)):
        return [""] * len(parts)
    return [listing([*map(whole, values)]) if all(values) else None for values in found]


def _durability(part: Part) -> str | None:
    """Return what commits wait for, whatever the call is named; None where it is not known of all runs."""
    if part.stores_nothing:
        return "nothing is stored"
    environment = part.report.environment
    codes = {warning.code for warning in environment.warnings}
    found = [durability_of(trial.effective, environment.sync) for trial in part.trials()]
    told = dict.fromkeys(None if one is None else _promise(one, codes) for one in found)
    return None if not told or None in told else "; ".join(filter(None, told))


def _promise(found: Durability, codes: set[str]) -> str | None:
    """Return what a commit waits for, and what that is worth; None where the call is not known."""
    if not found.syncs:
        worth = "no commit waits for a sync"
    elif "sync-does-nothing" in codes:
        worth = "each commit waits for a sync that does nothing"
    elif found.primitive is None:
        return None
    elif found.primitive == "F_FULLFSYNC" and "apple-fullfsync" in codes:
        worth = "each commit waits for what is reportedly a barrier only"
    elif not found.reaches_the_medium:
        worth = "each commit waits until the drive has it in its cache"
    else:
        worth = "each commit waits until the drive's cache is flushed"
    # In WAL mode EXTRA is FULL by another name.
    same = replace(found, level="full") if (found.journal, found.level) == ("wal", "extra") else found
    return f"{same.name}, {worth}"
