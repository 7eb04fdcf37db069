"""What Peewee costs beside the driver below it, and what more processes make of the rows a second."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlstress.analysis.comparing import UNTOLD, as_much, leaders
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import EQUAL, Group
from sqlstress.analysis.wording import between, duration, listing, percent, plural, processes, times
from sqlstress.experiments.methods.shown.cells import DONE, Cell, Cells, doing
from sqlstress.experiments.methods.shown.grids import Cost, contended
from sqlstress.experiments.methods.shown.judged import Judged, rates
from sqlstress.statistics.ratios import FEWEST, Ratio
from sqlstress.statistics.units import NS_PER_S

MOST = 3
"""So many methods are named of each sort."""


def binding(group: Group, judged: Judged, costly: Sequence[Cost]) -> Iterator[Finding]:
    """Say where Peewee costs most, in time for each row, and where next to nothing."""
    # Less done in a second is more time.
    ratios = {cost: judged.ratio(cost.cell, cost.bare) for cost in costly}
    longer = [cost for cost, ratio in ratios.items() if ratio and ratio.is_above and not _is_same(ratio)]
    same = [doing(cost.cell) for cost, ratio in ratios.items() if ratio and _is_same(ratio)]
    parts = [f"most {listing(_dearest(group, longer, ratios))}"] if longer else []
    parts += [f"less than {percent(EQUAL)} {listing(same)}"] if same else []
    parts += _untold(list(ratios.values()))
    if parts:
        yield Finding("binding", f"What Peewee costs beside sqlite3 below it: {'; '.join(parts)}.")


def _is_same(ratio: Ratio) -> bool:
    return ratio.is_within(EQUAL)


def _untold(ratios: Sequence[Ratio | None]) -> list[str]:
    """Say of how many ways the passes tell nothing."""
    count = sum(as_much(ratio, "") is None for ratio in ratios)
    return [f"of {plural(count, 'way')} it {UNTOLD}"] if count else []


def _dearest(group: Group, longer: Sequence[Cost], ratios: Mapping[Cost, Ratio | None]) -> list[str]:
    """Name those of which no other costs more for each row, beyond doubt; the dearest first."""
    extras = {id(cost.cell.run): _extras(cost) for cost in longer}
    certain = [cost for cost in longer if len(extras[id(cost.cell.run)]) >= FEWEST]
    tested = (
        group.tested([cost.cell.run for cost in certain], lambda run: extras[id(run)]) if certain else None
    )
    ranked = sorted(longer, key=lambda cost: -cost.extra_s)
    if tested:
        near = {id(run) for run in leaders(tested, [cost.cell.run for cost in certain]).runs}
        ranked = [cost for cost in ranked if id(cost.cell.run) in near]
    return [
        f"{doing(cost.cell)} ({duration(cost.extra_s * NS_PER_S)} a row, {as_much(ratios[cost], 'as long')})"
        for cost in ranked[:MOST]
    ]


def _extras(cost: Cost) -> dict[int, float]:
    """Return by how much a row took longer, in seconds, in each pass in which it did."""
    through, below = rates(cost.cell.run), rates(cost.bare.run)
    found = {number: 1 / through[number] - 1 / below[number] for number in through.keys() & below.keys()}
    return {number: extra for number, extra in found.items() if extra > 0}


def contention(cells: Cells, judged: Judged, driver: str) -> Iterator[Finding]:
    """Say what the most processes made of the total."""
    fewest, *more = cells.processes()
    if not more:
        return
    ratios = [
        (one.base, judged.ratio(one.base, most))
        for one in contended(cells, driver)
        if (most := one.more[-1]) and most.outcome == DONE
    ]
    told = [(base, ratio) for base, ratio in ratios if ratio and as_much(ratio, "")]
    apart = sorted((one for one in told if not _is_same(one[1])), key=lambda one: one[1].estimate)
    same = [doing(base) for base, ratio in told if _is_same(ratio)]
    fewer = [one for one in apart if one[1].is_below]
    greater = [one for one in reversed(apart) if one[1].is_above]
    parts = [f"fewer {_many(fewer)}"] if fewer else []
    parts += [f"more {_many(greater)}"] if greater else []
    parts += [f"about as many {listing(same)}"] if same else []
    parts += _untold([ratio for _, ratio in ratios])
    if parts:
        where = f"{processes(more[-1])} at once, rows a second beside those of {processes(fewest)}"
        yield Finding("contention", f"Through {driver}, {where}: {'; '.join(parts)}.")


def _many(found: Sequence[tuple[Cell, Ratio]]) -> str:
    """Name the first ones, with how many times as many they had."""
    told = [f"{doing(base)} ({times(ratio.estimate)}, {between(ratio)})" for base, ratio in found[:MOST]]
    rest = len(found) - MOST
    return listing([*told, *[f"{rest} more"] * (rest > 0)])
