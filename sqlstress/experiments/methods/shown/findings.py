"""What the experiment with methods says: which way to write and to read rows, and what the others cost.

What is compared is told as far as the passes tell it from noise; of too few of them, only which was highest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlstress.analysis.comparing import UNTOLD, as_much, doubts
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import EQUAL, Group
from sqlstress.analysis.wording import listing, rounded, whole
from sqlstress.experiments.methods.shown.beside import binding, contention
from sqlstress.experiments.methods.shown.cells import DOING, DONE, LIMIT, Cell, Cells, Series
from sqlstress.experiments.methods.shown.fastest import fastest, highest
from sqlstress.experiments.methods.shown.grids import BASE, costs
from sqlstress.experiments.methods.shown.judged import Judged
from sqlstress.statistics.ratios import Ratio

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
    yield from doubts(judged.tested, found)
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
        yield Finding(
            "transaction", f"Put writes into one transaction: beside a commit for each row {_made(gains)}."
        )
    elif any(as_much(ratio, "") is None for _, ratio in gains):
        yield Finding(
            "transaction", f"Whether one transaction is faster than a commit for each row {UNTOLD}."
        )


def _wal(cells: Cells, judged: Judged, fewest: int, driver: str) -> Iterator[Finding]:
    alone = _gains(cells, judged, fewest, driver, BASE, f"{BASE} + WAL")
    within = _gains(cells, judged, fewest, driver, f"{BASE} + TSC", f"{BASE} + WAL + TSC")
    if not alone:
        return
    text = f"WAL: with a commit for each row {_made(alone)}"
    if within:
        text += f"; in one transaction {_made(within)}"
    yield Finding("wal", f"{text}.")


def _made(gains: Gains) -> str:
    """Say what became how much faster, and of what that can't be told."""
    told = [f"{doing} {text}" for doing, ratio in gains if (text := as_much(ratio, "as fast"))]
    untold = [doing for doing, ratio in gains if not as_much(ratio, "as fast")]
    parts = [f"it made {listing(told)}"] * bool(told) + [f"it {UNTOLD} for {listing(untold)}"] * bool(untold)
    return ", and ".join(parts)


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


def _row_values(cells: Cells, judged: Judged, fewest: int) -> Iterator[Finding]:
    """Warn of row values where they took much longer than a join that means the same."""
    found = []
    for driver in cells.drivers():
        pair = cells.largest_common(Series(fewest, driver, "query", tricks) for tricks in ("ROW", "VALUES"))
        ratio = judged.ratio(*pair) if pair else None
        if ratio and ratio.low > FAR:
            found.append(f"{as_much(ratio, 'as long')} through {driver}")
    if found:
        yield Finding(
            "row-values",
            f"Take VALUES, not ROW: pairs compared as row values took {listing(found)}. Some versions of "
            "SQLite read the whole table for them; EXPLAIN QUERY PLAN tells.",
        )
