"""What the experiment with methods says: which way to write and to read rows, and what the others cost."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import duration, listing, processes, rounded, times, whole
from sqlstress.experiments.methods.shown.cells import DONE, LIMIT, Cell, Cells, Series
from sqlstress.experiments.methods.shown.grids import BASE, Cost, contended, costs, ratio
from sqlstress.statistics.units import NS_PER_S

MATTERS = 1.1
"""Ratios below this are none: single cells differ by as much."""
FAR = 2.0
"""A ratio from which on one of two ways that mean the same is advised against."""
DOING = {"insert": "inserting", "allocate": "allocating", "query": "querying"}
INSIDE = "SPC"
"""The method that not every problem allows."""
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
    yield from _fastest(cells, fewest, driver)
    yield from _transactions(cells, fewest, driver)
    yield from _wal(cells, fewest, driver)
    yield from _limits(cells)
    yield from _row_values(cells, fewest)
    yield from _binding(cells, fewest)
    yield from _contention(cells, driver)


def _fastest(cells: Cells, fewest: int, driver: str) -> Iterator[Finding]:
    """Name the best method of each phase, and the best that every problem allows."""
    told = []
    for phase in cells.phases():
        best = [
            cell
            for tricks in cells.tricks(phase)
            if (cell := cells.best(Series(fewest, driver, phase, tricks)))
        ]
        base = cells.best(Series(fewest, driver, phase, BASE))
        ranked = sorted(best, key=lambda cell: -cell.rows_per_s)
        general = [cell for cell in ranked if not cell.series.tricks.startswith(INSIDE)]
        chosen = [*ranked[:1], *general[:1]] if ranked[:1] != general[:1] else ranked[:1]
        if chosen:
            names = " or else ".join(_named(cell, base) for cell in chosen)
            told.append(f"{DOING.get(phase, phase)} by {names}")
    if told:
        yield Finding("fastest", f"Fastest through {driver}: {'; '.join(told)}.")


def _named(cell: Cell, base: Cell | None) -> str:
    factor = f", {times(cell.rows_per_s / base.rows_per_s)} {BASE}" if base and base is not cell else ""
    return f"{cell.series.tricks} ({rounded(cell.rows_per_s)} rows/s{factor})"


def _gains(cells: Cells, fewest: int, driver: str, slow: str, fast: str) -> list[tuple[str, float]]:
    """Return for each phase that writes how many times as fast one method is as another."""
    found = []
    for phase in ("insert", "allocate"):
        pair = cells.largest_common(Series(fewest, driver, phase, tricks) for tricks in (slow, fast))
        if pair:
            found.append((DOING[phase], pair[1].rows_per_s / pair[0].rows_per_s))
    return found


def _transactions(cells: Cells, fewest: int, driver: str) -> Iterator[Finding]:
    gains = _gains(cells, fewest, driver, BASE, f"{BASE} + TSC")
    if gains and min(gain for _, gain in gains) > MATTERS:
        yield Finding(
            "transaction",
            f"Put writes into one transaction: it made {_told_gains(gains)} as fast as committing each row.",
        )


def _wal(cells: Cells, fewest: int, driver: str) -> Iterator[Finding]:
    alone = _gains(cells, fewest, driver, BASE, f"{BASE} + WAL")
    within = _gains(cells, fewest, driver, f"{BASE} + TSC", f"{BASE} + WAL + TSC")
    if not alone:
        return
    text = f"With a commit for each row WAL made {_told_gains(alone)} as fast"
    if within:
        text += f"; in one transaction {_told_gains(within)}"
    yield Finding("wal", f"{text}.")


def _told_gains(gains: list[tuple[str, float]]) -> str:
    return listing([f"{doing} {times(gain)}" for doing, gain in gains])


def _limits(cells: Cells) -> Iterator[Finding]:
    """Say what SQLite refused, each reason once, and what does the same without meeting it."""
    reasons: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells.all:
        if cell.outcome == LIMIT and cell.note:
            name = cell.series.tricks.partition(" ")[0]
            reasons.setdefault((cell.series.phase, name, cell.note), []).append(cell)
    for (phase, name, note), refused in reasons.items():
        drivers = listing(list(dict.fromkeys(cell.series.driver for cell in refused)))
        rows = whole(refused[0].rows)
        text = f"LIMIT {DOING.get(phase, phase)} {rows} rows by {name} ({drivers}): {note}."
        yield Finding("limit", text + _instead(cells, refused[0], name))


def _instead(cells: Cells, refused: Cell, name: str) -> str:
    """Say which method did the same, or more."""
    series = refused.series
    for tricks in WORKING.get((series.phase, name), ()):
        beside = Series(series.processes, series.driver, series.phase, tricks)
        found = [cell for cell in cells.of(beside) if cell.outcome == DONE and cell.rows >= refused.rows]
        if found:
            return (
                f" {tricks} took {whole(found[-1].rows)} rows, at {rounded(found[-1].rows_per_s)} a second."
            )
    return ""


def _row_values(cells: Cells, fewest: int) -> Iterator[Finding]:
    """Warn of row values where they took much longer than a join that means the same."""
    found = []
    for driver in cells.drivers():
        pair = cells.largest_common(Series(fewest, driver, "query", tricks) for tricks in ("ROW", "VALUES"))
        if pair and pair[1].rows_per_s > FAR * pair[0].rows_per_s:
            found.append(f"{times(pair[1].rows_per_s / pair[0].rows_per_s)} as long through {driver}")
    if found:
        yield Finding(
            "row-values",
            f"Take VALUES, not ROW: pairs compared as row values took {listing(found)}. Some versions of "
            "SQLite read the whole table for them; EXPLAIN QUERY PLAN tells.",
        )


def _binding(cells: Cells, fewest: int) -> Iterator[Finding]:
    """Say where Peewee costs most and least, in time for each row."""
    ranked = sorted(costs(cells, fewest), key=lambda cost: cost.extra_s)
    if len(ranked) > 1 and ranked[-1].extra_s > 0:
        yield Finding("binding", f"Peewee costs most {_told(ranked[-1])}, and least {_told(ranked[0])}.")


def _told(cost: Cost) -> str:
    # What is less than nothing is chance.
    extra = f"{duration(cost.extra_s * NS_PER_S)} a row" if cost.extra_s > 0 else "no"
    return f"{_doing(cost.cell)} ({extra} more than sqlite3 below it)"


def _contention(cells: Cells, driver: str) -> Iterator[Finding]:
    """Say what the most processes made of the total."""
    fewest, *more = cells.processes()
    if not more:
        return
    factors = [(ratio(one.more[-1], one.base), one.base) for one in contended(cells, driver)]
    known = sorted((factor, _doing(base)) for factor, base in factors if factor is not None)
    if known:
        (least, worst), (most, best) = known[0], known[-1]
        yield Finding(
            "contention",
            f"Through {driver}, {processes(more[-1])} at once came to {times(least)} ({worst}) "
            f"to {times(most)} ({best}) the rows a second of {processes(fewest)}.",
        )


def _doing(cell: Cell) -> str:
    return f"{DOING.get(cell.series.phase)} by {cell.series.tricks}"
