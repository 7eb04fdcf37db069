"""How an A/B test is shown: its arms, in what they differ, a row for each cell, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from statistics import median

from sqlstress.analysis.ab import (
    NAMES,
    arm_differences,
    cells,
    conclusion,
    differences,
    estimate,
    figure,
    signed,
)
from sqlstress.analysis.advice import failures, wrong_data
from sqlstress.analysis.baseline import CaseCheck, Checked
from sqlstress.analysis.durability import describe_durability
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, group_runs
from sqlstress.analysis.wording import finite, listing, loss, noun, percent, what_is_possible
from sqlstress.experiment import face_of
from sqlstress.report import AbTest, Arm, Look, Report, Run
from sqlstress.show import heading
from sqlstress.show.blocks import (
    MISSING,
    NAME,
    Block,
    Bullets,
    Column,
    Lines,
    Paragraph,
    Table,
    Verdict,
    count_cell,
    layout_column,
    ms_cell,
    whole_cell,
)
from sqlstress.show.phrases import phrase
from sqlstress.statistics.sequential import FAIL, PASS, geometric_means

LEGEND = (
    "A and B: medians of their slices, which were measured in turns with the same seeds. B/A: the estimate "
    "from the pairs (Hodges-Lehmann), with its exact 95% interval (signed-rank). The verdict needs all of a "
    "wider one, which allows for every look."
)


def ab_blocks(report: Report, test: AbTest) -> Iterator[Block]:
    """Yield everything that an A/B test shows."""
    groups = group_runs(report.runs)
    findings = tuple(
        chain.from_iterable((*wrong_data(group), *failures(group), *_given_up(group)) for group in groups)
    )
    if groups:
        yield Lines(tuple(_heading(report, test, groups, findings)))
    if cells(report) and any(differences(report, test)):
        yield _ab_table(report, test)
        yield Paragraph(LEGEND)
    yield Verdict(conclusion(report, test))
    told = [phrase(finding) for finding in findings] + _interrupted(report)
    if told:
        yield Bullets(tuple(told))


def _heading(
    report: Report, test: AbTest, groups: tuple[Group, ...], findings: tuple[Finding, ...]
) -> Iterator[str]:
    first = groups[0]
    what = face_of(first.case).show().what(first)
    yield heading.describe(f"A/B test. {what}", first, report)
    for arm in test.arms:
        runs = [run for run in report.runs if run.arm == arm.name]
        yield f"{arm.name}: {_given(arm)}. {_durability(report, runs)}"
    own, other = ([run for run in report.runs if run.arm == arm.name] for arm in test.arms)
    if own and other:
        found = list(arm_differences(report, test, own[0].case, other[0].case))
        yield f"They differ in {listing(found)}." if found else "They are the same: any difference is chance."
    yield from heading.warnings(first, report.environment, findings)


def _given(arm: Arm) -> str:
    """Return what was given for an arm alone."""
    python = f"{arm.python} ({arm.version}, sqlstress {arm.tool_version})" if arm.python else ""
    return " ".join(filter(None, (python, *arm.options))) or "no options of its own"


def _durability(report: Report, runs: list[Run]) -> str:
    read_back = [trial.effective for run in runs for trial in run.trials if trial.effective]
    told = [describe_durability(effective, report.environment.sync) for effective in read_back]
    return " ".join(dict.fromkeys(told))


def _given_up(group: Group) -> Iterator[Finding]:
    """Yield that operations failed, which the figures do not show: what fails at once takes no time."""
    run = max(group.runs, key=Run.failed_share)
    if share := run.failed_share():
        why = face_of(run.case).show().why_failed(run)
        yield Finding("arm-failed", arm=run.arm, share=share, why=why)


def _interrupted(report: Report) -> list[str]:
    return ["Interrupted: what was measured by then is reported."] * report.interrupted


def _ab_table(report: Report, test: AbTest) -> Table:
    name, unit = NAMES[test.metric], " ms" if test.metric == "p99" else ""
    many_files = any(face_of(run.case).behaviour.many_files for run in report.runs)
    columns = (
        *([layout_column(run.case for run in report.runs)] if many_files else ()),
        Column("processes", ("proc-", "esses"), role=NAME),
        Column(f"A {name}{unit}", ("A", f"{name}{unit}")),
        Column(f"B {name}{unit}", ("B", f"{name}{unit}")),
        Column("pairs", ("", "pairs")),
        Column("B/A", ("", "B/A")),
        Column("from", ("95%", "from")),
        Column("to", ("", "to")),
    )
    found = differences(report, test)
    rows = [
        (
            *((_common(a.case.buckets, b.case.buckets),) if many_files else ()),
            _common(a.case.concurrency, b.case.concurrency),
            _middle(a, test.metric),
            _middle(b, test.metric),
            *_estimate(estimate(cell, test.metric, 0.0)),
        )
        for (a, b), cell in zip(cells(report), found, strict=True)
    ]
    if len(rows) > 1:
        total = estimate(geometric_means(found), test.metric, 0.0)
        rows.append(("all", *(MISSING,) * (len(columns) - 5), *_estimate(total)))
    return Table(columns, tuple(rows))


def _common(of_a: int, of_b: int) -> str:
    return whole_cell(of_a) if of_a == of_b else MISSING


def _middle(run: Run, metric: str) -> str:
    found = [value for trial in run.valid if (value := finite(figure(trial, metric)))]
    middle = median(found) if found else None
    return (ms_cell(middle) if metric == "p99" else count_cell(middle)) or MISSING


def _estimate(found: Look) -> tuple[str, str, str, str]:
    low, high = (MISSING if end is None else signed(end) for end in (found.low, found.high))
    return whole_cell(found.pairs), signed(found.ratio), low, high


# How a report is shown beside its baseline: a row for each case, the verdict, and how far to trust it.


TRUST = (
    "How often a stored baseline fails a build in which nothing has changed, on a model of shared machines: "
    "4 to 9% even where both were measured in one job, one after the other; 23 to 29% with a baseline of "
    "another machine and a threshold of 20%. sqlstress ab, which measures both in turns in the same job: "
    "under 1%. Use it where you can."
)


def check_blocks(checked: Checked, metric: str, max_drop: float) -> Iterator[Block]:
    """Yield everything that a check shows."""
    if checked.cases:
        yield _baseline_table(checked.cases, metric)
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


def _baseline_table(cases: tuple[CaseCheck, ...], metric: str) -> Table:
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
