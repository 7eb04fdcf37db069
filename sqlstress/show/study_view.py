"""Presentation of A/B tests, checks against a baseline, and searches for the highest rate.

An A/B test compares the variants (arms) A and B. A pair is a trial of A and a trial of B. A look is an
interim result. `metric` is "tps" or "p99", and `max_drop` is the allowed change for the worse, as a share.
In a search, a promise is a set of latency limits, and a window is a measurement at one rate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import ceil, exp, floor, log10
from statistics import median

from sqlstress.analysis import ab, highest_rate, sentences
from sqlstress.analysis.ab import NAMES, Pairs, cells, differences, possible_ratios
from sqlstress.analysis.advice import failures, partial_proofs, wrong_data_findings
from sqlstress.analysis.baseline import BaselineCheck
from sqlstress.analysis.durability import describe_durability
from sqlstress.analysis.finding import Finding, texts
from sqlstress.analysis.group import Group, group_runs
from sqlstress.analysis.highest_rate import (
    SHARES,
    TriedRate,
    answer_of,
    faults_of,
    latency_at,
    min_operations,
    promise_clause,
    skip_reason,
    tried_rates,
)
from sqlstress.analysis.wording import listing, loss, noun, percent, place, signed
from sqlstress.analysis.wording import possible_change as possible
from sqlstress.experiment import experiment_of
from sqlstress.report import AbTest, LimitSearch, Look, Promise, Report, Run, Trial
from sqlstress.show import heading
from sqlstress.show.at_a_rate import late_findings
from sqlstress.show.blocks import (
    BUCKETS_COLUMN,
    DUE_PER_S,
    MISSING,
    PROCESSES_COLUMN,
    Block,
    Bullets,
    Column,
    Lines,
    Note,
    Paragraph,
    Table,
    VerdictLine,
    count_cell,
    ms_cell,
    shortened,
    table_of,
    whole_cell,
)
from sqlstress.show.plots import Plain, Plot, View, axis, colour, level, marks, name
from sqlstress.show.shown import presenter_of
from sqlstress.statistics.search import BREAKS, HOLDS, OPEN
from sqlstress.statistics.sequential import FAIL, PASS, tolerance
from sqlstress.statistics.units import NS_PER_MS, digits, finite, plural, rounded


def _study_blocks(
    description: Iterable[str],
    figures: Iterable[Block],
    verdict: str,
    report: Report,
    findings: Iterable[Finding],
) -> Iterator[Block]:
    if report.runs:
        yield Lines(tuple(description))
    yield from figures
    yield VerdictLine(verdict)
    notes = [finding.text for finding in findings]
    notes += ["Interrupted. The results so far are shown."] * report.interrupted
    if notes:
        yield Bullets(tuple(notes))


def _metric_cell(value: float | None, metric: str) -> str:
    """Return a figure as a table cell: a p99 (given in ns) in ms, or a TPS; a dash for None."""
    return (ms_cell if metric == "p99" else count_cell)(value) or MISSING


def _change_cells(ratio: float, *ends: float | None) -> tuple[str, ...]:
    """Return cells with a ratio and the ends of its interval, as changes: 1.05 → "+5%"."""
    return signed(ratio), *(MISSING if end is None else signed(end) for end in ends)


def ab_blocks(report: Report, test: AbTest) -> Iterator[Block]:
    groups = group_runs(report.runs)
    findings: list[Finding] = []
    for group in groups:
        findings += (*wrong_data_findings(group), *failures(group))
        # Operations that fail at once take no time, so no figure shows them. A finding reports their share,
        # unless the verdict already reports that too many failed.
        run = max(group.runs, key=Run.failed_share)
        if (share := run.failed_share()) and not run.failed_too_many:
            why = presenter_of(run.case).failure_reason(run)
            findings.append(Finding(sentences.arm_failed, arm=run.arm or "", share=share, why=why))
    figures: tuple[Block, ...] = ()
    if (pairs := Pairs(report, test)).means:
        legend = (
            "A and B: medians of their slices, measured in turns with the same seeds. B/A: the estimate from "
            "the pairs (Hodges-Lehmann) with its exact interval (signed-rank), which allows for every look. "
            "B is faster or slower where it excludes 0%. The verdict uses a wider one: all of it must be "
            "on one side of the limit."
        )
        figures = (_ab_table(pairs), Note(legend))
    description = _arm_sentences(report, test, groups[0], tuple(findings)) if groups else ()
    yield from _study_blocks(description, figures, ab.conclusion(report, test).text, report, findings)


def _arm_sentences(
    report: Report, test: AbTest, first: Group, findings: tuple[Finding, ...]
) -> Iterator[str]:
    yield heading.describe(f"A/B test. {presenter_of(first.case).activity(first)}", first, report)
    runs = {arm.name: [run for run in report.runs if run.arm == arm.name] for arm in test.arms}
    for arm in test.arms:
        python = f"{arm.python} ({arm.version}, sqlstress {arm.tool_version})" if arm.python else ""
        options_text = " ".join(filter(None, (python, *arm.options))) or "no options of its own"
        read_back = [trial.effective for run in runs[arm.name] for trial in run.trials if trial.effective]
        durable = dict.fromkeys(
            describe_durability(effective, report.environment.sync) for effective in read_back
        )
        yield f"{arm.name}: {options_text}. {' '.join(durable)}"
    a, b = (runs[arm.name] for arm in test.arms)
    if a and b:
        differ = list(ab.arm_differences(report, test, a[0], b[0]))
        yield (
            f"A and B differ in {listing(differ)}."
            if differ
            else "A and B are the same: any difference is chance."
        )
    yield from heading.warnings(first, report.environment, findings)


def _ab_table(pairs: Pairs) -> Table:
    report, test = pairs.report, pairs.test
    what = f"{NAMES[test.metric]}{' ms' * (test.metric == 'p99')}"
    many_files = any(experiment_of(run.case).many_files for run in report.runs)
    columns = (
        *([BUCKETS_COLUMN] if many_files else ()),
        PROCESSES_COLUMN,
        Column(f"A {what}", ("A", what)),
        Column(f"B {what}", ("B", what)),
        Column("pairs"),
        Column("B/A"),
        Column("from"),
        Column("to"),
    )
    rows = []
    for (a, b), look in zip(cells(report), pairs.by_cell(), strict=True):
        layouts = [(a.case.buckets, b.case.buckets)] * many_files
        rows.append(
            (
                *(
                    whole_cell(value_a) if value_a == value_b else MISSING
                    for value_a, value_b in (*layouts, (a.case.concurrency, b.case.concurrency))
                ),
                *(_metric_cell(_median_figure(run, test.metric), test.metric) for run in (a, b)),
                *_estimate_cells(look),
            )
        )
    if len(rows) > 1:
        rows.append(("all", *(MISSING,) * (len(columns) - 5), *_estimate_cells(pairs.together())))
    return Table(columns, tuple(rows))


def _median_figure(run: Run, metric: str) -> float | None:
    """Return the median TPS of a run, or its median p99 in ns; None without figures."""
    values = [value for trial in run.valid if (value := finite(ab.figure(trial, metric)))]
    return median(values) if values else None


def _estimate_cells(look: Look) -> tuple[str, ...]:
    return whole_cell(look.pairs), *_change_cells(look.ratio, *(possible_ratios(look) or (None, None)))


ESTIMATE_OFFSET = 0.4
"""Distance on the x axis, in pairs, of an estimate's mark from its last pair, so that both are visible."""


def ab_plots(report: Report) -> Iterator[Plot]:
    """Yield the plot of an A/B test: the ratio B/A of each pair of trials, and the interim estimates."""
    if not (test := report.ab):
        return
    sign = -1 if test.metric == "p99" else 1
    data = []
    for number, ((a, _), pairs) in enumerate(zip(cells(report), differences(report, test), strict=True)):
        if pairs:
            label, ratios = name(place(a.case)), [exp(sign * pair) for pair in pairs]
            hover = f"{label}, pair %{{x}}: %{{y:.3f}}"
            x = range(1, len(ratios) + 1)
            data.append(marks(label, x, ratios, hover, color=colour(number), size=8, opacity=0.7))
    if not data:
        return
    if test.looks:
        data.append(_estimates_trace(test.looks))
    allowed = exp(sign * tolerance(test.metric, test.max_drop))
    shown = [1.0, allowed, *(ratio for trace in data for ratio in trace["y"])]
    layout = {
        "xaxis": axis("pair", whole=True),
        "yaxis": _ratio_axis(f"B over A, {NAMES[test.metric]}", min(shown), max(shown)),
        "shapes": [level(1.0, "--muted"), level(allowed, "--bad")],
    }
    note = (
        "A mark is a pair. Diamonds: the estimate at each look, with its interval. Red: what is "
        "allowed. All above it passes, all below it fails."
    )
    yield Plot("Pair by pair", note, (View("", data, layout),), wide=True)


def _ratio_axis(title: str, low: float, high: float) -> Plain:
    """Return a logarithmic axis for ratios from `low` to `high`, with readable ticks."""
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    if len(decades) > 4:
        return axis(title, type="log")
    ticks = [step * 10.0**ten for ten in decades for step in (1, 2, 5)]
    # For a narrow range, use even steps such as 0.9, 1, 1.1.
    step = next((step for step in (0.01, 0.02, 0.05, 0.1, 0.2) if high - low < 8 * step), None)
    if step is not None and high <= 2 * low:
        ticks = [round(count * step, 2) for count in range(floor(low / step), ceil(high / step) + 1)]
    return axis(title, type="log", tickvals=ticks)


def _estimates_trace(looks: tuple[Look, ...]) -> Plain:
    shown_looks = [look for look in looks if finite(look.ratio) is not None]
    ends = []
    for look in shown_looks:
        if look.worst is not None and look.bound is not None:
            ends.append(sorted((look.worst, look.bound)))
        else:  # saved by an older version, which judged the estimate instead of the bounds
            ends.append([look.low or look.ratio, look.high or look.ratio])
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "estimate",
        "x": [look.pairs + ESTIMATE_OFFSET for look in shown_looks],
        "text": [digits(look.pairs) for look in shown_looks],
        "y": [look.ratio for look in shown_looks],
        "error_y": {
            "array": [max(0.0, high - look.ratio) for look, (_, high) in zip(shown_looks, ends, strict=True)],
            "arrayminus": [
                max(0.0, look.ratio - low) for look, (low, _) in zip(shown_looks, ends, strict=True)
            ],
            "color": "--ink",
        },
        "marker": {"color": "--ink", "size": 11, "symbol": "diamond"},
        "hovertemplate": "after %{text} pairs: %{y:.3f}",
    }


TRUST = (
    "False alarms in a model of shared machines: if one job measures both, one after the other, a stored "
    "baseline fails 4 to 9% of unchanged builds. With a baseline from another machine and a "
    "threshold of 20%, it fails 23 to 29%. sqlstress ab measures both in turns in one job and fails under "
    "1%: use it where you can."
)


def check_blocks(checked: BaselineCheck, metric: str, max_drop: float) -> Iterator[Block]:
    if checked.cases:
        what = f"{NAMES[metric]}{' ms' * (metric == 'p99')}"
        columns = (
            Column("case", align="left"),
            Column(f"baseline {what}", ("baseline", what)),
            Column(f"now {what}", ("now", what)),
            Column("change"),
            Column("from", ("95%", "from")),
            Column("to"),
        )
        rows = (
            (
                case.name,
                _metric_cell(case.base, metric),
                _metric_cell(case.now, metric),
                *_change_cells(case.ratio, case.low, case.high),
            )
            for case in checked.cases
        )
        yield Table(columns, tuple(rows))
        yield Note(
            "baseline and now: medians of the trials; change: the estimate from all pairs of trials "
            "(Hodges-Lehmann) with its exact 95% interval (Mann-Whitney). The verdict uses a wider "
            "interval, wrong in at most 1% of checks; all of it must be on one side of the limit."
        )
    if checked.differing:
        yield Paragraph(f"The reports differ in {listing(checked.differing)}.")
    if checked.left_out > 0:
        yield Paragraph(left_out(checked))
    yield VerdictLine(check_verdict(checked, metric, max_drop))
    yield Paragraph(TRUST)


def left_out(checked: BaselineCheck) -> str:
    """Return a sentence on the number of the baseline's cases that the checked report lacks."""
    return f"Cases of the baseline that were not measured again: {checked.left_out}."


def check_verdict(checked: BaselineCheck, metric: str, max_drop: float) -> str:
    """Return sentences on the verdict of a check, its reason, and the next step."""
    if checked.failed is not None:
        return f"FAIL: {checked.failed}."
    if checked.wrong is not None or checked.ratio is None:
        return f"FAIL: the data is wrong: {checked.wrong}."
    metric_name, allowed = NAMES[metric], percent(max_drop)
    mean = " (geometric mean of the cases)" if len(checked.cases) > 1 else ""
    changed = f"{metric_name} changed by {signed(checked.ratio or 1.0)}{mean}"
    of_verdict = [case for case in checked.cases if case.verdict == checked.verdict]
    if checked.verdict == FAIL:
        failed = [f"{signed(case.ratio)} (at best {_bound(case.best)}) at {case.name}" for case in of_verdict]
        return (
            f"FAIL: {metric_name} changed by {listing(failed)}; {allowed} is allowed. "
            "Confirm this with sqlstress ab before you look for the cause."
        )
    worst = max(of_verdict, key=lambda case: loss(case.worst or case.ratio, metric))
    if checked.verdict == PASS:
        return (
            f"PASS: no {noun(metric)} of more than {allowed}. {changed}, "
            f"at worst {_bound(worst.worst)} at {worst.name}."
        )
    open_ = f"{possible(worst.worst, worst.best, metric)} at {worst.name}"
    opposed = next((case for case in of_verdict if not case.agrees(metric, max_drop)), None)
    if opposed:
        medians = signed(opposed.now / opposed.base)
        opposite = f"the estimate is {signed(opposed.ratio)} but the medians give {medians} at {opposed.name}"
        open_ = f"{opposite}; {open_}"
    return (
        f"INCONCLUSIVE: {open_}; {allowed} is allowed. {changed}. Use more trials (--repeat) or sqlstress ab."
    )


def _bound(ratio: float | None) -> str:
    return MISSING if ratio is None else signed(ratio)


_WORDS = {HOLDS: "holds", BREAKS: "does not", OPEN: "open"}
"""Table cells by verdict on a rate: whether the rate keeps the promise (the latency limits)."""
_LONGEST = 30
"""Maximum length of a cell in the column "broken by", in characters."""


def limit_blocks(report: Report, search: LimitSearch) -> Iterator[Block]:
    # Windows are longer at low rates. Here, all runs get the length of the shortest window, because only runs
    # with equal options share a table.
    usual_s = min((run.case.duration_s for run in report.runs if run.case.rate), default=0.0)
    groups = group_runs(
        replace(run, case=replace(run.case, duration_s=usual_s)) if run.case.rate else run
        for run in report.runs
    )
    findings = tuple(
        finding
        for group in groups
        for topic in (wrong_data_findings, failures, partial_proofs, late_findings)
        for finding in topic(group)
    )
    rates = tried_rates(report, search)
    figures: tuple[Block, ...] = ()
    if rates:
        legend = (
            "windows: how many of them kept the promise; TPS, p50, p99, p99.9 and max: of the median window, "
            "from the due time of an operation; verdict: of the answer below, open = too near the limit."
        )
        figures = (_rates_table(report, search), Note(legend))
    description = _search_sentences(report, search, groups[-1], findings) if groups else ()
    yield from _study_blocks(
        description, figures, " ".join(texts(highest_rate.conclusion(report, search))), report, findings
    )


def _search_sentences(
    report: Report, search: LimitSearch, tried: Group, findings: tuple[Finding, ...]
) -> Iterator[str]:
    """Yield sentences on a search, then warnings. `tried` has the runs at the rates that were tried."""
    what = presenter_of(tried.case).activity(tried)
    yield heading.describe(
        f"Search for the highest rate with {promise_clause(search.promise)}. {what}", tried, report
    )
    yield from heading.durability(tried, report.environment)
    closed = next((run for run in report.runs if not run.case.rate and run.valid), None)
    if closed:
        reached = rounded(closed.median_tps() or 0.0)
        yield f"In a closed loop the same processes reached {reached} {tried.unit} per second."
    yield from _checkpoint_sentences(report, search)
    yield from heading.warnings(tried, report.environment, findings)


def _checkpoint_sentences(report: Report, search: LimitSearch) -> Iterator[str]:
    """Yield a sentence on the number of checkpoints in a window at the rates near the answer.

    A window without a checkpoint does not show the operations that checkpoints delay.
    """
    answer, rates = answer_of(report, search), tried_rates(report, search)
    near = [attempt for attempt in rates if answer.verdict(attempt.rate) == OPEN] or rates[:1]
    longer = "use a longer --duration."
    if any(_are_checkpoints_unknown(attempt.run) for attempt in near):
        yield f"The number of checkpoints in a window is unknown for this load: if it may be none, {longer}"
    counts = [count for attempt in near if (count := _min_checkpoints(attempt.run)) is not None]
    if counts and min(counts) < 1:
        yield f"Warning: some windows may contain no checkpoint, which delays many operations: {longer}"
    elif counts:
        many = plural(int(min(counts)), "checkpoint")
        yield (f"Near the answer, each window spans at least {many}, as a commit writes at least one page.")


def _min_checkpoints(run: Run) -> float | None:
    """Return a lower bound for the checkpoints of a file in any window of a run; None if unknown."""
    counts = []
    for trial in run.valid:
        commits = presenter_of(run.case).commits(trial)
        pages = trial.effective.get("wal_autocheckpoint", "")
        if commits is None or not pages.isdecimal() or not int(pages):
            return None
        counts.append(commits / int(pages) / run.case.buckets)
    return min(counts, default=None)


def _are_checkpoints_unknown(run: Run) -> bool:
    """Return whether a run writes to a WAL, but the number of its checkpoints is unknown."""
    experiment, trial = experiment_of(run.case), run.valid_median_trial()
    if trial is None or presenter_of(run.case).commits(trial) is not None:
        return False
    return trial.effective.get("journal_mode", "wal") == "wal" and experiment.writes(run.case)


def _rates_table(report: Report, search: LimitSearch) -> Table:
    answer = answer_of(report, search)

    def latency(label: str) -> Column[TriedRate]:
        leaves = {"p50": 10, "max": 20, "p99.9": 30}.get(label)
        return Column(f"{label} ms", cell=lambda attempt: _latency_cell(attempt, label), leaves=leaves)

    columns: tuple[Column[TriedRate], ...] = (
        replace(DUE_PER_S, cell=lambda attempt: count_cell(attempt.rate)),
        Column("TPS", cell=lambda attempt: count_cell(attempt.run.median_tps())),
        *map(latency, (*SHARES, "max")),
        Column("windows", cell=lambda attempt: f"{attempt.kept_count} of {len(attempt.margins)}"),
        Column("verdict", align="left", cell=lambda attempt: _WORDS[answer.verdict(attempt.rate)]),
        Column("broken by", ("", "broken by"), "left", cell=lambda attempt: _broken_by(attempt, search)),
    )
    return table_of(tried_rates(report, search), columns)


def _latency_cell(attempt: TriedRate, name: str) -> str | None:
    """Return the percentile `name` at a rate (median of its windows), in ms; None for too few operations."""
    ns = attempt.typical(name)
    return None if ns is None or attempt.fewest < min_operations([name]) else ms_cell(ns)


def _broken_by(attempt: TriedRate, search: LimitSearch) -> str:
    """Return the cell "broken by": limits that windows exceeded, or why windows were not judged."""
    kinds = Counter(kind for trial in attempt.run.valid for kind in _window_faults(trial, search.promise))
    return shortened(", ".join(kind for kind, _ in kinds.most_common()), _LONGEST)


def _window_faults(trial: Trial, promise: Promise) -> tuple[str, ...]:
    reason = skip_reason(trial, promise)
    return (reason,) if reason else faults_of(trial, promise)


def limit_plots(report: Report) -> Iterator[Plot]:
    """Yield the plot of a search's windows by rate, with a view for each latency limit of the promise."""
    if report.limit is None:
        return
    views = []
    for bound, bound_s in report.limit.promise.bounds.items():
        layout = {
            "xaxis": axis("due per second"),
            "yaxis": axis(f"{bound}, ms", type="log"),
            "shapes": [level(bound_ms, "--bad")] if (bound_ms := finite(bound_s * 1000)) else [],
        }
        if data := list(_window_marks(report, report.limit, bound)):
            views.append(View(bound, data, layout))
    if views:
        note = (
            "A mark is a window. The line is the promise: a window above it broke the promise, and so did "
            "one that fell behind."
        )
        yield Plot("Windows tried", note, tuple(views), wide=True)


def _window_marks(report: Report, search: LimitSearch, bound: str) -> Iterator[Plain]:
    """Yield marks: windows that kept the promise, then the others. `bound` is the percentile to plot."""
    windows = [
        (not faults_of(trial, search.promise), attempt.rate, ms)
        for attempt in tried_rates(report, search)
        for trial in attempt.run.valid
        if (ms := _latency_ms(trial, bound))
    ]
    for label, wanted, shade in (("kept it", True, "--good"), ("broke it", False, "--bad")):
        points = [(rate, ms) for kept, rate, ms in windows if kept == wanted]
        if points:
            rates, times = zip(*points, strict=True)
            hover, texts = f"%{{text}}/s: {bound} %{{y:.3g}} ms", list(map(digits, rates))
            yield marks(label, rates, times, hover, texts, color=shade, size=9, opacity=0.7)


def _latency_ms(trial: Trial, bound: str) -> float | None:
    latency_ns = finite(latency_at(trial.arrived.all_kinds if trial.arrived else None, bound))
    return latency_ns / NS_PER_MS if latency_ns else None
