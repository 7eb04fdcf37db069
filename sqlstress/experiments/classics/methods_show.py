"""How methods are shown: what its tables, sentences and plots say; pure functions of a report."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from math import log10
from statistics import median_low

from sqlstress.analysis.advice import partial_proofs
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import processes
from sqlstress.experiments.classics.methods import tricks_of
from sqlstress.experiments.classics.methods_findings import (
    BARE,
    BASE,
    DONE,
    LIMIT,
    MAPPER,
    TIMEOUT,
    WRONG,
    Cell,
    Cells,
    Cost,
    Series,
    contended,
    costs,
    methods,
    rates,
)
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.show.blocks import (
    MISSING,
    NAME,
    Block,
    Column,
    Figure,
    Note,
    Paragraph,
    Table,
    seconds_cell,
    spread_cell,
    table_of,
)
from sqlstress.show.plots import Plain, Plot, View, axis, name
from sqlstress.show.shown import Shown
from sqlstress.statistics.compare import spread
from sqlstress.statistics.units import finite, format_count, rounded, whole

MATRICES = (
    (
        "Sample insertion",
        "insert",
        "samples",
        (("1b1", "1b1 + TSC", "1b1 + WAL", "1b1 + WAL + TSC"), ("BLK", "JSON", "BLK/n + TSC")),
    ),
    ("Result allocation, slow methods", "allocate", "results", (("1b1", "1b1 + WAL", "1b1 + TSC"),)),
    (
        "Result allocation, fast methods",
        "allocate",
        "results",
        (("BLK", "1b1 + WAL + TSC", "JSON", "BLK/n + TSC"),),
    ),
    ("Result allocation inside SQLite", "allocate", "results", (("SPC", "SPC + WAL"),)),
    (
        "Queries",
        "query",
        "pairs",
        (("1b1", "JSON", "SPC"), ("1b1 + WAL", "JSON + WAL", "SPC + WAL"), ("BLK", "ROW", "VALUES")),
    ),
)
"""The published tables, scales downwards, methods side by side: title, phase, what the rows count; the
columns in parts that fit a terminal, the published before ours."""
_FAILURES = {TIMEOUT: "TIMEOUT", LIMIT: "LIMIT", WRONG: "FAILED"}
_PHASE = Column("phase", align="left", role=NAME)
_METHOD = Column("method", align="left", role=NAME)


def _matrices(cells: Cells, driver: str) -> Iterator[Block]:
    for title, phase, counted, parts in MATRICES:
        series = [[cells.series(phase, tricks, driver) for tricks in part] for part in parts]
        known = [found for part in series if (found := [each for each in part if each.cells])]
        if known:
            yield Paragraph(f"{title} with {driver}, {processes(cells.processes[0])}:")
            yield from (_matrix(part, counted) for part in known)


def _matrix(series: Sequence[Series], counted: str) -> Table:
    """Return a row for each scale, a column for each method; the best of each column stands out."""
    scales = sorted({(cell.scale, cell.rows) for each in series for cell in each.cells})
    lines = [[each.at(scale) for each in series] for scale, _ in scales]
    best = [each.best for each in series]
    columns = [Column(counted)]
    for each in series:
        # What a method is combined with stands on two lines if there is much.
        *first, last = each.tricks.split(" + ")
        heading = (" + ".join(first), f"+ {last}") if len(first) > 1 else ("", each.tricks)
        columns.append(Column(each.tricks, heading))
    return Table(
        tuple(columns),
        tuple(
            (_short(rows), *(_written(cell, _timed) for cell in line))
            for (_, rows), line in zip(scales, lines, strict=True)
        ),
        marked=frozenset(
            (row, place + 1)
            for row, line in enumerate(lines)
            for place, cell in enumerate(line)
            if cell is not None and cell is best[place]
        ),
    )


def _written(cell: Cell | None, figures: Callable[[Cell], str]) -> str:
    """Write the figures of a cell that was done, else why it was not."""
    if cell is None:
        return MISSING
    return figures(cell) if cell.outcome == DONE else _FAILURES.get(cell.outcome, "failed")


def _timed(cell: Cell) -> str:
    """Write rows per second and, in brackets, the time."""
    took = f"{seconds_cell(cell.seconds)} s" if cell.seconds < 9999.5 else "> 2 h"
    return f"{_rate(cell.rows_per_s)} ({took})"


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
    if ratio < 9999.5:
        return f"{ratio:.0f}x"
    return f"{ratio / 1000:.0f}kx" if ratio < 999_500 else f"{ratio:.0e}x"


def _two_digits(value: float) -> str:
    """Write a number with two significant digits, in at most eight characters: "180", "-0.027"."""
    return f"{float(f'{value:.2g}'):g}"


# The other tables: summaries, what the binding costs, what more processes change.


TRICKS = {"--": "", "WAL": " + WAL", "TSC": " + TSC", "TSC + WAL": " + WAL + TSC"}
"""The columns of a summary → what is combined with a method."""
PUBLISHED = (("insert", "1b1"), ("allocate", "BLK"), ("allocate", "JSON"), ("allocate", "SPC"))
"""The lines of the published summary, which mixes two phases."""


def _summary(cells: Cells, driver: str, published: bool) -> Table:
    """Return the best of each method, with each combination of WAL and one transaction.

    All are relative to one by one without tricks in the same phase; as published, to the insertion.
    """
    methods = dict.fromkeys((series.phase, series.method) for series in cells.every())
    lines = []
    for phase, method in PUBLISHED if published else methods:
        base = cells.series("insert" if published else phase, BASE, driver).best
        series = [cells.series(phase, method + tricks, driver) for tricks in TRICKS.values()]
        best = [each.best or next(iter(each.cells), None) for each in series]
        if published or any(best):
            lines.append((phase, method, *(_written(cell, partial(_rate_over, base)) for cell in best)))
    return Table((_PHASE, _METHOD, *(Column(tricks, ("", tricks)) for tricks in TRICKS)), tuple(lines))


def _over(base: Cell, cell: Cell) -> str:
    return _factor(cell.rows_per_s / base.rows_per_s)


def _rate_over(base: Cell | None, cell: Cell) -> str:
    return f"{_rate(cell.rows_per_s)} ({_over(base, cell)})" if base else _rate(cell.rows_per_s)


BINDING: tuple[Figure[Cost], ...] = (
    Figure(_PHASE, lambda cost: cost.cell.series.phase),
    Figure(_METHOD, lambda cost: cost.cell.series.tricks),
    Figure(Column("rows"), lambda cost: _short(cost.cell.rows)),
    Figure(Column(f"{MAPPER} rows/s", (MAPPER, "rows/s")), lambda cost: _rate(cost.cell.rows_per_s)),
    Figure(Column(f"{BARE} rows/s", (BARE, "rows/s")), lambda cost: _rate(cost.bare.rows_per_s)),
    Figure(
        Column("apsw rows/s"),
        lambda cost: _rate(cost.other.rows_per_s) if cost.other else None,
    ),
    Figure(Column("times as long", ("times", "as long")), lambda cost: _two_digits(cost.ratio)),
    Figure(Column("µs more a row", ("µs more", "a row")), lambda cost: _two_digits(1e6 * cost.extra_s)),
)


def _contention(cells: Cells, driver: str) -> Table:
    """Return what more processes make of each method, at the largest scale that the fewest have done."""
    fewest, *more = cells.processes
    lines = []
    for base, others in contended(cells, driver):
        named = (base.series.phase, base.series.tricks, _short(base.rows), _rate(base.rows_per_s))
        lines.append((*named, *(_written(cell, partial(_over, base)) for cell in others)))
    columns = [Column(f"times, {count} processes", (str(count), "processes")) for count in more]
    rate = Column(f"rows/s of {fewest}", ("rows/s", f"of {fewest}"))
    return Table(
        (_PHASE, _METHOD, Column("rows"), rate, *columns),
        tuple(lines),
        leaving=("rows", *(column.name for column in columns)),
    )


class MethodsShown(Shown):
    """The published matrices and summaries, and what goes further."""

    topics = (methods, partial_proofs)

    def what(self, group: Group) -> str:
        return "Rows are written and read one by one (1b1), in bulk (BLK), from JSON and inside SQLite (SPC)"

    def blocks(self, group: Group) -> Iterator[Block]:
        cells = Cells(group)
        if not cells.all:
            return
        yield Note(f"{'; '.join(_legend(group))}.")
        yield from map(Paragraph, _verified(group))
        for driver in cells.drivers:
            yield from _matrices(cells, driver)
        for driver in cells.drivers:
            yield Paragraph(
                f"The best of each method with {driver}: rows per second and, in brackets, the ratio to "
                f"{BASE} in the same phase:"
            )
            yield _summary(cells, driver, published=False)
        if any(run.case.spec.as_published for run in group.runs):
            for driver in cells.drivers:
                yield Paragraph(
                    f"The same with {driver} as published: 1b1 inserts samples, the others allocate results, "
                    "and all are relative to the insertion of samples:"
                )
                yield _summary(cells, driver, published=True)
        if costly := list(costs(cells)):
            yield Paragraph(
                f"Cost of {MAPPER} over {BARE}, on which it runs, with the same SQLite, at the largest "
                "scale that both completed. Methods that commit each row are left out, as the disk decides "
                "there:"
            )
            yield table_of(costly, BINDING)
        for driver in cells.drivers if len(cells.processes) > 1 else ():
            yield Paragraph(
                f"Several processes at once with {driver}, each with its own range: rows per second of all "
                f"together, relative to {processes(cells.processes[0])}:"
            )
            yield _contention(cells, driver)

    def plots(self, group: Group) -> Iterator[Plot]:
        """Yield a matrix for each phase and driver: a row for each method, a column for each scale."""
        parts: dict[tuple[str, str], list[Run]] = {}
        several = len({run.case.concurrency for run in group.runs}) > 1
        for run in group.runs:
            how = f"{run.case.driver}, {processes(run.case.concurrency)}" if several else run.case.driver
            parts.setdefault((run.case.spec.phase, how), []).append(run)
        views = [view for (phase, how), runs in parts.items() if (view := _view(phase, how, runs))]
        if views:
            note = (
                "Seconds by the scale of the job. Bluer is longer, on a logarithmic scale. Empty: not tried."
            )
            yield Plot("Methods", note, tuple(views), wide=True)

    def tracked(self, run: Run) -> Iterator[float | None]:
        return (trial.rows_per_s for trial in run.ended)

    def tracked_unit(self, case: Case) -> str:
        return "rows"

    def bar(self, case: Case) -> tuple[str, Hashable]:
        """Of each method the largest scale has a bar, phase by phase."""
        return case.spec.phase, (tricks_of(case), case.driver, case.concurrency)

    def bar_name(self, case: Case) -> str:
        return f"{tricks_of(case)}, {case.driver}, {whole(case.spec.scale)}"


def _legend(group: Group) -> Iterator[str]:
    yield "Rows per second and, in brackets, the time of all rows; the best of each column is marked"
    yield "WAL: journal mode WAL, otherwise DELETE; TSC: all in one transaction"
    samples = next((run.case.spec.samples for run in group.runs if run.case.spec.phase == "query"), 0)
    if samples:
        rows = format_count(samples * (samples - 1) // 2)
        yield f"queries read a table of {rows} results: all pairs of {format_count(samples)} samples"
    # How far the typical figures may be off: in the tables there is no room for it.
    spreads = [off for run in group.runs if (off := spread([*rates(run).values()])) is not None]
    if spreads:
        middle, most = (spread_cell(off).strip() for off in (median_low(spreads), max(spreads)))
        yield f"rows per second may be off by {middle} in the middle cell and {most} in the noisiest"
    yield "TIMEOUT: given up, and not tried at larger scales; LIMIT: SQLite rejects such a statement"


def _verified(group: Group) -> Iterator[str]:
    """Yield which cells were verified."""
    statuses = {run.verdict.status for run in group.runs if run.trials}
    if "failed" in statuses:
        yield "FAILED: the tables or the answers are wrong. All other cells were verified."
    elif statuses == {"ok"}:
        yield "The tables and the answers of all measured cells were verified."
    if "skipped" in statuses:
        yield "Not verified: --verify none."


# The matrix of methods: how long each took, at each scale.


DIGITS = 4
"""Of the logarithm that a cell is coloured by: the last ones differ from system to system."""


def _view(phase: str, how: str, runs: list[Run]) -> View | None:
    cells = {(name(tricks_of(run.case)), run.case.spec.scale): _cell(run) for run in runs}
    if not any(seconds for seconds, _ in cells.values()):
        return None
    rows = list(dict.fromkeys(row for row, _ in cells))
    scales = sorted({scale for _, scale in cells})
    lines = [[cells.get((row, scale), (None, "")) for scale in scales] for row in rows]
    heat: Plain = {
        "type": "heatmap",
        "x": [f"{scale:,}" for scale in scales],
        "y": rows,
        "z": [[round(log10(seconds), DIGITS) if seconds else None for seconds, _ in line] for line in lines],
        "text": [[text for _, text in line] for line in lines],
        "hovertemplate": "%{y}, %{x}: %{text} s",
    }
    layout = {
        "xaxis": axis("pairs" if phase == "query" else "samples", type="category"),
        "yaxis": axis("", type="category", autorange="reversed"),
        "height": 140 + 30 * len(rows),
    }
    return View(name(f"{phase}, {how}"), [heat], layout)


def _cell(run: Run) -> tuple[float | None, str]:
    """Return the seconds that a run took, and what is written there."""
    trial = run.shown()
    seconds = finite(trial.seconds) if trial else None
    if trial is None or seconds is None or seconds <= 0:
        return None, "" if run.skipped else "failed"
    return seconds, rounded(seconds) if trial.outcome == "done" else name(trial.outcome)
