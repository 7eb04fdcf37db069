"""How a report is shown beside its baseline: a row for each case, the verdict, and how far to trust it."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.ab import NAMES, signed
from sqlstress.analysis.check import CaseCheck, Checked
from sqlstress.analysis.possible import loss, noun, what_is_possible
from sqlstress.analysis.wording import listing, percent
from sqlstress.display.blocks import Block, Column, Paragraph, Table, Verdict
from sqlstress.display.figures import MISSING, count_cell, ms_cell
from sqlstress.statistics.gate import FAIL, PASS

TRUST = (
    "How often a stored baseline fails a build in which nothing has changed, on a model of shared machines: "
    "4 to 9% even where both were measured in one job, one after the other; 23 to 29% with a baseline of "
    "another machine and a threshold of 20%. sqlstress ab, which measures both in turns in the same job: "
    "under 1%. Use it where you can."
)


def check_blocks(checked: Checked, metric: str, max_drop: float) -> Iterator[Block]:
    """Yield everything that a check shows."""
    if checked.cases:
        yield _table(checked.cases, metric)
        yield Paragraph(
            "Medians of the trials; change: the estimate from all pairs of trials (Hodges-Lehmann), with its "
            "exact 95% interval (Mann-Whitney). The verdict needs the whole of a wider one, wrong in at most "
            "1% of checks: to pass it lies above what is allowed, to fail below."
        )
    if checked.differing:
        yield Paragraph(f"The reports differ in {listing(checked.differing)}.")
    if checked.left_out > 0:
        yield Paragraph(left_out(checked))
    yield Verdict(check_conclusion(checked, metric, max_drop))
    yield Paragraph(TRUST)


def left_out(checked: Checked) -> str:
    """Return how many cases of the baseline the report has not got."""
    return f"Cases of the baseline that were not measured again: {checked.left_out}."


def check_conclusion(checked: Checked, metric: str, max_drop: float) -> str:
    """Return the verdict, what was found, and what to do next."""
    if checked.wrong is not None or checked.ratio is None:
        return f"FAIL: the data is not what the workers were told it is: {checked.wrong}."
    name, allowed = NAMES[metric], percent(max_drop)
    of_verdict = [case for case in checked.cases if case.verdict == checked.verdict]
    if checked.verdict == FAIL:
        failed = [f"{signed(case.ratio)} ({_bound('best', case.best)}) at {case.name}" for case in of_verdict]
        return (
            f"FAIL: {name} changed by {listing(failed)}; {allowed} is allowed. "
            "Confirm it with sqlstress ab before you look for the cause."
        )
    if checked.verdict == PASS:
        worst = max(of_verdict, key=lambda case: loss(case.worst or case.ratio, metric))
        return (
            f"PASS: no {noun(metric)} of more than {allowed}. {_mean(checked, name)}, "
            f"{_bound('worst', worst.worst)} at {worst.name}."
        )
    return _inconclusive(of_verdict, checked, metric, max_drop)


def _inconclusive(open_: list[CaseCheck], checked: Checked, metric: str, max_drop: float) -> str:
    """Return what is left possible of the case of which most is, and what would tell."""
    worst = max(open_, key=lambda case: loss(case.worst or case.ratio, metric))
    possible = f"{what_is_possible(worst.worst, worst.best, metric)} at {worst.name}"
    opposed = next((case for case in open_ if not case.agrees(metric, max_drop)), None)
    if opposed:
        medians = signed(opposed.now / opposed.base)
        opposite = f"the estimate is {signed(opposed.ratio)} and the medians say {medians} at {opposed.name}"
        possible = f"{opposite}; {possible}"
    return (
        f"INCONCLUSIVE: {possible}, {percent(max_drop)} is allowed. {_mean(checked, NAMES[metric])}. "
        "Measure with more trials (--repeat), or use sqlstress ab."
    )


def _mean(checked: Checked, name: str) -> str:
    beside = " (geometric mean of the cases)" if len(checked.cases) > 1 else ""
    return f"{name} changed by {signed(checked.ratio or 1.0)}{beside}"


def _bound(which: str, ratio: float | None) -> str:
    return f"at {which} {MISSING if ratio is None else signed(ratio)}"


def _table(cases: tuple[CaseCheck, ...], metric: str) -> Table:
    unit = f"{NAMES[metric]}{' ms' * (metric == 'p99')}"
    columns = (
        Column("case", ("", "case"), align="left"),
        Column(f"baseline {unit}", ("baseline", unit)),
        Column(f"now {unit}", ("now", unit)),
        Column("change", ("", "change")),
        Column("from", ("95%", "from")),
        Column("to", ("", "to")),
    )
    cell = ms_cell if metric == "p99" else count_cell
    rows = tuple(
        (
            case.name,
            cell(case.base) or MISSING,
            cell(case.now) or MISSING,
            signed(case.ratio),
            *(MISSING if end is None else signed(end) for end in (case.low, case.high)),
        )
        for case in cases
    )
    return Table(columns, rows)
