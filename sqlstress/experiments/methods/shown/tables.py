"""The tables of the experiment with methods: the matrices, the summaries, the binding, more processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlstress.display.blocks import NAME, Column, Table
from sqlstress.display.figures import MISSING, Figure, seconds_cell, table_of
from sqlstress.experiments.methods.shown.cells import DONE, LIMIT, TIMEOUT, WRONG, Cell, Cells, Series
from sqlstress.experiments.methods.shown.grids import (
    BARE,
    MAPPER,
    TRICKS,
    Contended,
    Cost,
    Line,
    contended,
    ratio,
)

_FAILURES = {TIMEOUT: "TIMEOUT", LIMIT: "LIMIT", WRONG: "FAILED"}
_PHASE = Column("phase", ("", "phase"), "left", NAME)
_METHOD = Column("method", ("", "method"), "left", NAME)


def column(tricks: str) -> Column:
    """Return the column of a method: what it is combined with stands on two lines if there is much."""
    parts = tricks.split(" + ")
    if len(parts) < 3:
        return Column(tricks, ("", tricks))
    return Column(tricks, (" + ".join(parts[:2]), f"+ {parts[2]}"))


def matrix(cells: Cells, series: Sequence[Series], counted: str) -> Table | None:
    """Return a published table: a row for each scale, a column for each method; None without any cell."""
    known = [one for one in series if cells.of(one)]
    if not known:
        return None
    scales = sorted({(cell.scale, cell.rows) for one in known for cell in cells.of(one)})
    found = [[cells.at(one, scale) for one in known] for scale, _ in scales]
    best = [cells.best(one) for one in known]
    return Table(
        (Column(counted, ("", counted)), *(column(one.tricks) for one in known)),
        tuple((_short(rows), *map(_timed, line)) for (_, rows), line in zip(scales, found, strict=True)),
        marked=frozenset(
            (row, place + 1)
            for row, line in enumerate(found)
            for place, cell in enumerate(line)
            if cell is not None and cell is best[place]
        ),
    )


def _timed(cell: Cell | None) -> str:
    """Write rows per second and, in brackets, the time."""
    if cell is None or cell.outcome != DONE:
        return _failure(cell)
    took = f"{seconds_cell(cell.seconds)} s" if cell.seconds < 9999.5 else "> 2 h"
    return f"{_rate(cell.rows_per_s)} ({took})"


def _failure(cell: Cell | None) -> str:
    return MISSING if cell is None else _FAILURES.get(cell.outcome, "failed")


def _short(count: float) -> str:
    """Write a count in at most seven characters: "844,350", "4.50M"."""
    if count < 999_999.5:
        return f"{count:,.0f}"
    return f"{count / 1e6:.2f}M" if count < 9.995e8 else f"{count:.1e}"


def _rate(rows_per_s: float) -> str:
    """Write rows per second in as many: with a decimal below 1,000, as the published tables have it."""
    return f"{rows_per_s:.1f}" if rows_per_s < 999.95 else _short(rows_per_s)


def _factor(ratio: float) -> str:
    """Write how many times as fast, in at most six characters: "1x", "1.2x", "90x", "17kx"."""
    if ratio < 0.095:
        return "<0.01x" if ratio < 0.01 else f"{ratio:.2f}x"
    if ratio < 9.95:
        return "1x" if ratio == 1 else f"{ratio:.1f}x"
    return f"{ratio:.0f}x" if ratio < 9999.5 else _thousands(ratio)


def _thousands(ratio: float) -> str:
    return f"{ratio / 1000:.0f}kx" if ratio < 999_500 else f"{ratio:.0e}x"


def _two_digits(value: float) -> str:
    """Write a number with two significant digits, in at most eight characters: "180", "-0.027"."""
    return f"{float(f'{value:.2g}'):g}"


def summary_table(lines: Iterable[Line]) -> Table:
    """Return a summary: the best of each method, with each combination of WAL and one transaction."""
    return Table(
        (_PHASE, _METHOD, *(Column(tricks, ("", tricks)) for tricks in TRICKS)),
        tuple((line.phase, line.name, *(_compared(cell, line.base) for cell in line.best)) for line in lines),
    )


def _compared(cell: Cell | None, base: Cell | None) -> str:
    if cell is None or cell.outcome != DONE:
        return _failure(cell)
    factor = f" ({_factor(cell.rows_per_s / base.rows_per_s)})" if base else ""
    return f"{_rate(cell.rows_per_s)}{factor}"


def binding_table(costs: Sequence[Cost]) -> Table:
    """Return what Peewee costs with each method."""
    return table_of(
        costs,
        (
            Figure(_PHASE, lambda cost: cost.cell.series.phase),
            Figure(_METHOD, lambda cost: cost.cell.series.tricks),
            Figure(Column("rows", ("", "rows")), lambda cost: _short(cost.cell.rows)),
            Figure(Column(f"{MAPPER} rows/s", (MAPPER, "rows/s")), lambda cost: _rate(cost.cell.rows_per_s)),
            Figure(Column(f"{BARE} rows/s", (BARE, "rows/s")), lambda cost: _rate(cost.bare.rows_per_s)),
            Figure(
                Column("apsw rows/s", ("apsw", "rows/s")),
                lambda cost: _rate(cost.other.rows_per_s) if cost.other else None,
            ),
            Figure(Column("times as long", ("times", "as long")), lambda cost: _two_digits(cost.ratio)),
            Figure(
                Column("µs more a row", ("µs more", "a row")), lambda cost: _two_digits(1e6 * cost.extra_s)
            ),
        ),
    )


def contention_table(cells: Cells, driver: str) -> Table:
    """Return what more processes make of each method, at the largest scale that the fewest have done."""
    fewest, *more = cells.processes()
    rate = Column(f"rows/s of {fewest}", ("rows/s", f"of {fewest}"))
    factors = [Column(f"times, {count} processes", (str(count), "processes")) for count in more]
    return Table(
        (_PHASE, _METHOD, Column("rows", ("", "rows")), rate, *factors),
        tuple(_contended(one) for one in contended(cells, driver)),
        leaving=("rows", *(factor.name for factor in factors)),
    )


def _contended(one: Contended) -> tuple[str, ...]:
    series, base = one.base.series, one.base
    factors = [(cell, ratio(cell, base)) for cell in one.more]
    told = (_failure(cell) if factor is None else _factor(factor) for cell, factor in factors)
    return (series.phase, series.tricks, _short(base.rows), _rate(base.rows_per_s), *told)
