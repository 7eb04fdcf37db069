"""How methods are shown: what its tables, sentences and plots say; pure functions of a report."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from math import log10
from statistics import median_low

from sqlstress.analysis.advice import partial_proofs
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import finite, processes, rounded, whole
from sqlstress.experiments.methods.cells import (
    BARE,
    BASE,
    DONE,
    LIMIT,
    MAPPER,
    MATRICES,
    TIMEOUT,
    TRICKS,
    WRONG,
    Cell,
    Cells,
    Contended,
    Cost,
    Line,
    Matrix,
    Series,
    contended,
    costs,
    rates,
    ratio,
    summary,
    summary_as_published,
)
from sqlstress.experiments.methods.experiment import tricks_of
from sqlstress.experiments.methods.method_findings import methods
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.show.blocks import (
    MISSING,
    NAME,
    Block,
    Column,
    Figure,
    Paragraph,
    Table,
    seconds_cell,
    spread_cell,
    table_of,
)
from sqlstress.show.plots import Plain, Plot, View, axis, name
from sqlstress.show.shown import Shown
from sqlstress.statistics.compare import spread
from sqlstress.statistics.units import format_count

# The tables of the experiment with methods: the matrices, the summaries, the binding, more processes.


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


class MethodsShown(Shown):
    """The published matrices and summaries, and what goes further."""

    topics = (methods, partial_proofs)

    def what(self, group: Group) -> str:
        return "Rows are written and read one by one (1b1), in bulk (BLK), from JSON and inside SQLite (SPC)"

    def blocks(self, group: Group) -> Iterator[Block]:
        cells = Cells(group)
        if not cells.all:
            return
        fewest = cells.processes()[0]
        yield Paragraph(f"{'; '.join(_legend(group))}.")
        for driver in cells.drivers():
            for table in MATRICES:
                yield from _matrix(cells, table, fewest, driver)
        for driver in cells.drivers():
            yield Paragraph(
                f"The best of each method through {driver}, rows per second, and how many times those of "
                f"{BASE} in the same phase:"
            )
            yield summary_table(summary(cells, fewest, driver))
        if any(run.case.spec.as_published for run in group.runs):
            yield from _as_published(cells, fewest)
        yield from _binding(cells, fewest)
        yield from _contention(cells)

    def plots(self, group: Group) -> Iterator[Plot]:
        return plots(group)

    def tracked(self, run: Run) -> Iterator[float | None]:
        return (trial.rows_per_s for trial in run.valid if trial.outcome == "done")

    def tracked_unit(self, case: Case) -> str:
        return "rows"

    def bar(self, case: Case) -> tuple[str, Hashable]:
        """Of each method the largest scale has a bar, phase by phase."""
        return case.spec.phase, (tricks_of(case), case.driver, case.concurrency)

    def bar_name(self, case: Case) -> str:
        return f"{tricks_of(case)}, {case.driver}, {whole(case.spec.scale)}"


def _legend(group: Group) -> Iterator[str]:
    yield "Rows per second and, in brackets, the time of all rows; the best of each column stands out"
    yield "WAL: journal mode WAL, else DELETE; TSC: all in one transaction"
    queried = next((run.case.spec for run in group.runs if _is_query(run.case)), None)
    if queried and queried.samples:
        rows = format_count(queried.samples * (queried.samples - 1) // 2)
        yield f"queried is a table of {rows} results: all pairs of {format_count(queried.samples)} samples"
    yield from _spread(group)
    yield "TIMEOUT: given up, and not tried at larger scales; LIMIT: SQLite takes no such statement"
    statuses = {run.verdict.status for run in group.runs if run.trials}
    if statuses & {"ok", "failed"}:
        yield "FAILED: the tables or the answers are not what they must be; all other cells were verified"
    if "skipped" in statuses:
        yield "not verified"


def _spread(group: Group) -> Iterator[str]:
    """Yield how far the typical figures may be off: in the tables there is no room for it."""
    found = [off for run in group.runs if (off := spread([*rates(run).values()])) is not None]
    if found:
        middle, most = (spread_cell(off).strip() for off in (median_low(found), max(found)))
        yield f"the typical rows per second may be off by {middle} in the middle cell, {most} in the noisiest"


def _is_query(case: Case) -> bool:
    return bool(case.spec.phase == "query")


def _matrix(cells: Cells, table: Matrix, fewest: int, driver: str) -> Iterator[Block]:
    titled = False
    for part in table.parts:
        series = [Series(fewest, driver, table.phase, tricks) for tricks in part]
        shown = matrix(cells, series, table.counted)
        if shown and not titled:
            yield Paragraph(f"{table.title} through {driver}, {processes(fewest)}:")
            titled = True
        if shown:
            yield shown


def _as_published(cells: Cells, fewest: int) -> Iterator[Block]:
    for driver in cells.drivers():
        yield Paragraph(
            f"The same through {driver} as published: 1b1 inserts samples, the others allocate results, and "
            "all are relative to the insertion of samples:"
        )
        yield summary_table(summary_as_published(cells, fewest, driver))


def _binding(cells: Cells, fewest: int) -> Iterator[Block]:
    found = list(costs(cells, fewest))
    if found:
        yield Paragraph(
            f"What {MAPPER} costs beside {BARE}, which lies below it with the same SQLite, at the largest "
            "scale that both have done; left out is what commits each row, as the disk decides there:"
        )
        yield binding_table(found)


def _contention(cells: Cells) -> Iterator[Block]:
    counts = cells.processes()
    if len(counts) < 2:
        return
    for driver in cells.drivers():
        yield Paragraph(
            f"Several processes at once through {driver}, each with a range of its own: how many times the "
            f"rows per second of {processes(counts[0])} all of them together had:"
        )
        yield contention_table(cells, driver)


# The matrix of methods: how long each took, at each scale.


MatrixOfGroup = dict[tuple[str, str], tuple[float | None, str]]
"""Row and column → seconds, and what is written there."""

SCALES = {"query": "pairs"}
"""Phase → what its scales count; samples in the others."""

DIGITS = 4


def plots(group: Group) -> Iterator[Plot]:
    """Yield a matrix for each phase and driver: a row for each method, a column for each scale."""
    parts: dict[str, list[Run]] = {}
    differing = len({run.case.concurrency for run in group.runs}) > 1
    for run in group.runs:
        if run.case.spec:
            parts.setdefault(f"{run.case.spec.phase}, {_by(run.case, differing)}", []).append(run)
    views = [view for part, runs in parts.items() if (view := _view(part, runs))]
    if views:
        note = "Seconds, by the scale of the job. The bluer, the longer, by the logarithm. Empty: not tried."
        yield Plot("Methods", note, tuple(views), wide=True)


def _by(case: Case, differing: bool) -> str:
    """Return the driver; and how many processes, where they differ."""
    return f"{case.driver}, {processes(case.concurrency)}" if differing else case.driver


def _view(label: str, runs: list[Run]) -> View | None:
    cells: MatrixOfGroup = {(_row(run.case), _scale(run.case)): _cell(run) for run in runs}
    rows = list(dict.fromkeys(_row(run.case) for run in runs))
    sizes = {run.case.spec.scale for run in runs if run.case.spec}
    scales = [f"{scale:,}" for scale in sorted(sizes)]
    if not any(seconds for seconds, _ in cells.values()):
        return None
    found = [[cells.get((row, scale), (None, "")) for scale in scales] for row in rows]
    heat: Plain = {
        "type": "heatmap",
        "x": scales,
        "y": rows,
        "z": [[_shade(seconds) for seconds, _ in line] for line in found],
        "text": [[told for _, told in line] for line in found],
        "hovertemplate": "%{y}, %{x}: %{text} s",
    }
    layout = {
        "xaxis": axis(SCALES.get(label.partition(",")[0], "samples"), type="category"),
        "yaxis": axis("", type="category", autorange="reversed"),
        "height": 140 + 30 * len(rows),
    }
    return View(name(label), [heat], layout)


def _shade(seconds: float | None) -> float | None:
    """Return what a cell is coloured by. The last digits of a logarithm differ from system to system."""
    return round(log10(seconds), DIGITS) if seconds else None


def _row(case: Case) -> str:
    return name(tricks_of(case))


def _scale(case: Case) -> str:
    return f"{case.spec.scale:,}"


def _cell(run: Run) -> tuple[float | None, str]:
    trial = run.typical()
    seconds = finite(trial.seconds) if trial and trial.error is None else None
    if trial is None or seconds is None or seconds <= 0:
        return None, "" if run.skipped else "failed"
    return seconds, rounded(seconds) if trial.outcome == "done" else name(trial.outcome)
