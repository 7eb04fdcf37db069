"""What the experiment with methods says: which way to write and to read rows, and what the others cost.

What is compared is told as far as the passes tell it from noise; of too few of them, only which was highest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sqlstress.analysis.answers import doubts, is_told, leaders
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import EQUAL, Group, Tested
from sqlstress.experiments.methods.cells import (
    BASE,
    DOING,
    DONE,
    LIMIT,
    Cell,
    Cells,
    Cost,
    Judged,
    Series,
    contended,
    costs,
    doing,
    rates,
)
from sqlstress.statistics.compare import FEWEST, Ratio
from sqlstress.statistics.units import NS_PER_S

# Which method is the fastest in each phase, and which of those that every problem allows.


INSIDE = "SPC"
"""The method that not every problem allows."""


def highest(cells: Cells, fewest: int, driver: str) -> Iterator[Finding]:
    """Name the highest cell of each phase, where single trials tell no more."""
    told = []
    for phase in cells.phases():
        best = [
            cell
            for tricks in cells.tricks(phase)
            if (cell := cells.best(Series(fewest, driver, phase, tricks)))
        ]
        if best:
            most = max(best, key=lambda cell: cell.rows_per_s)
            told.append(
                Finding("method-highest", doing=DOING[phase], method=most.series.tricks, rate=most.rows_per_s)
            )
    if told:
        yield Finding("methods-highest", driver=driver, phases=tuple(told))


def fastest(cells: Cells, judged: Judged, fewest: int, driver: str) -> Iterator[Finding]:
    """Name the fastest methods of each phase, and the fastest that every problem allows."""
    told = []
    for phase in cells.phases():
        known = [
            cell
            for tricks in cells.tricks(phase)
            for cell in cells.of(Series(fewest, driver, phase, tricks))
            if judged.knows(cell)
        ]
        if judged.tested and known:
            base = cells.best(Series(fewest, driver, phase, BASE))
            told.append(_phase(judged, judged.tested, known, base))
    if told:
        yield Finding("methods-fastest", driver=driver, phases=tuple(told))


def _phase(judged: Judged, tested: Tested, known: Sequence[Cell], base: Cell | None) -> Finding:
    best = max(known, key=lambda cell: tested.middle(cell.run))
    general = [cell for cell in known if not cell.series.tricks.startswith(INSIDE)]
    others = None
    if best not in general and general:
        others = _leading(judged, tested, general, base)
    fastest = _leading(judged, tested, known, base)
    return Finding("phase-fastest", doing=DOING[best.series.phase], fastest=fastest, others=others)


def _leading(judged: Judged, tested: Tested, known: Sequence[Cell], base: Cell | None) -> Finding:
    """Return the methods of which a cell is not slower than the best one, beyond doubt."""
    by_run = {id(cell.run): cell for cell in known}
    found = leaders(tested, [cell.run for cell in known])
    best, near = by_run[id(found.best)], [by_run[id(run)] for run in found.runs]
    alone = all(cell.series == best.series for cell in near)
    return Finding(
        "methods-lead",
        methods=tuple(dict.fromkeys(cell.series.tricks for cell in near)),
        about=not alone,
        rate=best.rows_per_s,
        beside=_beside(judged, best, base),
        equal=not alone and found.equal,
        unclear=not alone and found.unclear,
    )


def _beside(judged: Judged, cell: Cell, base: Cell | None) -> Finding | None:
    """Return how many times as fast a cell is as one by one."""
    if base is None or base.series == cell.series:
        return None
    ratio = judged.ratio(base, cell)
    if is_told(ratio):
        return Finding("method-beside", ratio=ratio, base=BASE)
    return Finding("method-beside-unclear", unclear=True, base=BASE)


# What Peewee costs beside the driver below it, and what more processes make of the rows a second.


MOST = 3
"""So many methods are named of each sort."""


def binding(group: Group, judged: Judged, costly: Sequence[Cost]) -> Iterator[Finding]:
    """Yield where Peewee costs most, in time for each row, and where next to nothing."""
    # Less done in a second is more time.
    ratios = {cost: judged.ratio(cost.cell, cost.bare) for cost in costly}
    longer = [cost for cost, ratio in ratios.items() if ratio and ratio.is_above and not _is_same(ratio)]
    same = [doing(cost.cell) for cost, ratio in ratios.items() if ratio and _is_same(ratio)]
    parts = [Finding("binding-most", ways=_dearest(group, longer, ratios))] if longer else []
    parts += [Finding("binding-little", share=EQUAL, ways=same)] if same else []
    parts += _unclear(list(ratios.values()))
    if parts:
        yield Finding("binding", parts=tuple(parts))


def _is_same(ratio: Ratio) -> bool:
    return ratio.is_within(EQUAL)


def _unclear(ratios: Sequence[Ratio | None]) -> list[Finding]:
    """Return of how many ways the passes tell nothing."""
    count = sum(not is_told(ratio) for ratio in ratios)
    return [Finding("ways-unclear", unclear=count)] if count else []


def _dearest(
    group: Group, longer: Sequence[Cost], ratios: Mapping[Cost, Ratio | None]
) -> tuple[Finding, ...]:
    """Return those of which no other costs more for each row, beyond doubt; the dearest first."""
    extras = {id(cost.cell.run): _extras(cost) for cost in longer}
    certain = [cost for cost in longer if len(extras[id(cost.cell.run)]) >= FEWEST]
    tested = (
        group.tested([cost.cell.run for cost in certain], lambda run: extras[id(run)]) if certain else None
    )
    ranked = sorted(longer, key=lambda cost: -cost.extra_s)
    if tested:
        near = {id(run) for run in leaders(tested, [cost.cell.run for cost in certain]).runs}
        ranked = [cost for cost in ranked if id(cost.cell.run) in near]
    return tuple(
        Finding("way-dearer", way=doing(cost.cell), row_ns=cost.extra_s * NS_PER_S, ratio=ratios[cost])
        for cost in ranked[:MOST]
    )


def _extras(cost: Cost) -> dict[int, float]:
    """Return by how much a row took longer, in seconds, in each pass in which it did."""
    through, below = rates(cost.cell.run), rates(cost.bare.run)
    found = {number: 1 / through[number] - 1 / below[number] for number in through.keys() & below.keys()}
    return {number: extra for number, extra in found.items() if extra > 0}


def contention(cells: Cells, judged: Judged, driver: str) -> Iterator[Finding]:
    """Yield what the most processes made of the total."""
    fewest, *more = cells.processes()
    if not more:
        return
    ratios = [
        (one.base, judged.ratio(one.base, most))
        for one in contended(cells, driver)
        if (most := one.more[-1]) and most.outcome == DONE
    ]
    told = [(base, ratio) for base, ratio in ratios if ratio and is_told(ratio)]
    apart = sorted((one for one in told if not _is_same(one[1])), key=lambda one: one[1].estimate)
    same = [doing(base) for base, ratio in told if _is_same(ratio)]
    fewer = [one for one in apart if one[1].is_below]
    greater = [one for one in reversed(apart) if one[1].is_above]
    parts = [Finding("contention-fewer", ways=_many(fewer))] if fewer else []
    parts += [Finding("contention-more", ways=_many(greater))] if greater else []
    parts += [Finding("contention-same", ways=same)] if same else []
    parts += _unclear([ratio for _, ratio in ratios])
    if parts:
        yield Finding("contention", driver=driver, most=more[-1], fewest=fewest, parts=tuple(parts))


def _many(found: Sequence[tuple[Cell, Ratio]]) -> tuple[Finding, ...]:
    """Return the first ones, with how many times as many they had."""
    named = [Finding("way-changed", way=doing(base), ratio=ratio) for base, ratio in found[:MOST]]
    rest = len(found) - MOST
    return (*named, *[Finding("ways-more", count=rest)] * (rest > 0))


FAR = 2.0
"""A ratio from which on one of two ways that mean the same is advised against."""
WORKING = {
    ("insert", "BLK"): ("BLK/n + TSC",),
    ("allocate", "BLK"): ("BLK/n + TSC",),
    ("query", "BLK"): ("VALUES", "ROW", "JSON"),
}
"""What does the same where a method of a phase meets a limit."""


def methods(group: Group) -> Iterator[Finding]:
    """Yield what a group says of its first driver, and what the drivers and more processes change."""
    cells = Cells(group)
    if not cells.all:
        return
    driver, fewest = cells.drivers()[0], cells.processes()[0]
    costly = list(costs(cells, fewest))
    # What Peewee costs most is tested apart: all of it is to hold together.
    shared = replace(group, groups=group.groups * (1 + bool(costly)))
    judged = Judged(shared, cells)
    if judged.tested is None:
        found = [*highest(cells, fewest, driver)]
    else:
        found = [
            *fastest(cells, judged, fewest, driver),
            *_transactions(_gains(cells, judged, fewest, driver, BASE, f"{BASE} + TSC")),
            *_wal(cells, judged, fewest, driver),
            *_row_values(cells, judged, fewest),
            *binding(shared, judged, costly),
            *contention(cells, judged, driver),
        ]
    yield from found
    yield from doubts(judged.tested, found, group.case)
    yield from _limits(cells)


Gains = list[tuple[str, Ratio | None]]
"""What is done, and how many times as fast it became."""


def _gains(cells: Cells, judged: Judged, fewest: int, driver: str, slow: str, fast: str) -> Gains:
    """Return for each phase that writes how many times as fast one method is as another."""
    found = []
    for phase in ("insert", "allocate"):
        pair = cells.largest_common(Series(fewest, driver, phase, tricks) for tricks in (slow, fast))
        if pair:
            found.append((DOING[phase], judged.ratio(*pair)))
    return found


def _transactions(gains: Gains) -> Iterator[Finding]:
    if any(ratio and ratio.is_above and not ratio.is_within(EQUAL) for _, ratio in gains):
        yield Finding("transaction", made=_made(gains))
    elif not all(is_told(ratio) for _, ratio in gains):
        yield Finding("transaction-unclear", unclear=True)


def _wal(cells: Cells, judged: Judged, fewest: int, driver: str) -> Iterator[Finding]:
    alone = _gains(cells, judged, fewest, driver, BASE, f"{BASE} + WAL")
    within = _gains(cells, judged, fewest, driver, f"{BASE} + TSC", f"{BASE} + WAL + TSC")
    if not alone:
        return
    yield Finding("wal", alone=_made(alone), within=_made(within) if within else None)


def _made(gains: Gains) -> Finding:
    """Return what became how much faster, and of what that can't be told."""
    faster = tuple(
        Finding("made-faster", doing=doing, ratio=ratio) for doing, ratio in gains if is_told(ratio)
    )
    unclear = tuple(doing for doing, ratio in gains if not is_told(ratio))
    return Finding("made", faster=faster, both=bool(faster and unclear), unclear=unclear)


def _limits(cells: Cells) -> Iterator[Finding]:
    """Yield what SQLite refused, each reason once, and what does the same without meeting it."""
    reasons: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells.all:
        if cell.outcome == LIMIT and cell.note:
            name = cell.series.tricks.partition(" ")[0]
            reasons.setdefault((cell.series.phase, name, cell.note), []).append(cell)
    for (phase, name, note), refused in reasons.items():
        yield Finding(
            "method-limit",
            doing=DOING.get(phase, phase),
            rows=refused[0].rows,
            method=name,
            drivers=tuple(dict.fromkeys(cell.series.driver for cell in refused)),
            reason=note,
            instead=_instead(cells, refused[0], name),
        )


def _instead(cells: Cells, refused: Cell, name: str) -> Finding | None:
    """Return which method did the same, or more."""
    series = refused.series
    for tricks in WORKING.get((series.phase, name), ()):
        beside = Series(series.processes, series.driver, series.phase, tricks)
        found = [cell for cell in cells.of(beside) if cell.outcome == DONE and cell.rows >= refused.rows]
        if found:
            return Finding("method-instead", method=tricks, rows=found[-1].rows, rate=found[-1].rows_per_s)
    return None


def _row_values(cells: Cells, judged: Judged, fewest: int) -> Iterator[Finding]:
    """Warn of row values where they took much longer than a join that means the same."""
    found = []
    for driver in cells.drivers():
        pair = cells.largest_common(Series(fewest, driver, "query", tricks) for tricks in ("ROW", "VALUES"))
        ratio = judged.ratio(*pair) if pair else None
        if ratio and ratio.low > FAR:
            found.append(Finding("took-as-long", ratio=ratio, driver=driver))
    if found:
        yield Finding("row-values", took=tuple(found))
