"""How a search for the highest rate is shown: what was promised, each rate that was tried, and the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain

from sqlstress.analysis.advice import failures, partial_proofs, wrong_data
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, group_runs
from sqlstress.analysis.highest_rate import SHARES, Tried, answered, broken, conclusion, promised, tried
from sqlstress.analysis.wording import finite, plural, rounded, whole
from sqlstress.experiment import face_of
from sqlstress.report import Report, Trial
from sqlstress.report.study_results import LimitSearch
from sqlstress.show import heading
from sqlstress.show.at_a_rate import from_due, harness
from sqlstress.show.blocks import (
    NAME,
    Block,
    Bullets,
    Column,
    Figure,
    Lines,
    Paragraph,
    Table,
    Verdict,
    count_cell,
    ms_cell,
    shortened,
    table_of,
)
from sqlstress.show.phrases import phrase
from sqlstress.show.plots import Plain, Plot, View, axis, level
from sqlstress.statistics import histogram
from sqlstress.statistics.search import ALL, BREAKS, HOLDS, OPEN
from sqlstress.statistics.units import NS_PER_MS

LEGEND = (
    "windows: how many of them kept the promise; p50, p99 and p99.9: of all of them together, from the "
    f"moment an operation was due; TPS: their median; verdict: it holds where {ALL} of {ALL} windows kept "
    "it, does not where none did, and is open where some did"
)
_WORDS = {HOLDS: "holds", BREAKS: "does not", OPEN: "open"}
_LONGEST = 30


def limit_blocks(report: Report, search: LimitSearch) -> Iterator[Block]:
    """Yield everything that a search shows."""
    groups = group_runs(report.runs)
    rates = tried(report, search)
    findings = tuple(chain.from_iterable(_findings(group) for group in groups))
    if groups:
        yield Lines(tuple(_heading(report, search, groups, findings)))
    if any(one.kept for one in rates):
        yield _table(rates, search)
        yield Paragraph(f"{LEGEND}.")
    yield Verdict(conclusion(report, search))
    told = [phrase(finding) for finding in findings]
    told += ["Interrupted: what was measured by then is reported."] * report.interrupted
    if told:
        yield Bullets(tuple(told))


def _findings(group: Group) -> Iterator[Finding]:
    yield from wrong_data(group)
    yield from failures(group)
    yield from partial_proofs(group)
    yield from harness(group)


def _heading(
    report: Report, search: LimitSearch, groups: tuple[Group, ...], findings: tuple[Finding, ...]
) -> Iterator[str]:
    last = groups[-1]
    what = face_of(last.case).show().what(last)
    yield heading.describe(f"The highest rate with {promised(search.promise)}. {what}", last, report)
    yield from heading.durability(last, report.environment)
    closed = next((run for run in report.runs if not run.case.rate and run.valid), None)
    if closed:
        reached = rounded(closed.median_tps() or 0.0)
        yield f"In a closed loop the same processes reached {reached} {last.unit} a second."
    yield from checkpoints(report, search)
    yield from heading.warnings(last, report.environment, findings)


def checkpoints(report: Report, search: LimitSearch) -> Iterator[str]:
    """Yield how many checkpoints a window spans, where that follows from its commits."""
    found = answered(report, search)
    near = [one for one in tried(report, search) if one.rate in (found.holds, found.breaks)]
    near = near or list(tried(report, search)[:1])
    counts = [count for one in near if (count := _spanned(one)) is not None]
    if any(_may_span(one) for one in near):
        yield (
            "How many checkpoints a window spans is not known of this load: if it may be none, give a longer "
            "--duration."
        )
    if not counts:
        return
    least = min(counts)
    if least < 1:
        yield (
            "Warning: some windows may span no checkpoint, after which many operations wait: give a longer "
            "--duration."
        )
    else:
        many = plural(int(least), "checkpoint")
        yield f"Each window at the ends of the answer spans {many} or more: a commit writes a page at least."


def _spanned(one: Tried) -> float | None:
    """Return how many checkpoints a window at a rate spans at least, in each file."""
    least = None
    for trial in one.run.valid:
        commits = face_of(one.run.case).show().commits(trial)
        pages = trial.effective.get("wal_autocheckpoint", "")
        if commits is None or not pages.isdecimal() or not int(pages):
            return None
        spanned = commits / int(pages) / one.run.case.buckets
        least = spanned if least is None else min(least, spanned)
    return least


def _may_span(one: Tried) -> bool:
    """Return whether a window may span checkpoints, and nobody counts the commits."""
    face, trial = face_of(one.run.case), one.run.shown()
    if trial is None or face.show().commits(trial) is not None:
        return False
    return trial.effective.get("journal_mode", "wal") == "wal" and face.behaviour.writes(one.run.case)


def _table(rates: tuple[Tried, ...], search: LimitSearch) -> Table:
    figures: tuple[Figure[Tried], ...] = (
        Figure(Column("due per s", ("due", "per s"), role=NAME), lambda one: count_cell(one.rate)),
        Figure(Column("TPS", ("", "TPS")), lambda one: count_cell(one.run.median_tps())),
        Figure(Column("p50 ms", ("p50", "ms")), lambda one: _ms(one, "p50_ns")),
        Figure(Column("p99 ms", ("p99", "ms")), lambda one: _ms(one, "p99_ns")),
        Figure(Column("p99.9 ms", ("p99.9", "ms")), lambda one: _ms(one, "p999_ns")),
        Figure(Column("max ms", ("max", "ms")), lambda one: _ms(one, "max_ns")),
        Figure(Column("windows", ("", "windows")), lambda one: f"{sum(one.kept)} of {len(one.kept)}"),
        Figure(Column("verdict", ("", "verdict"), "left"), lambda one: _WORDS.get(one.verdict, "")),
        Figure(Column("broken by", ("", "broken by"), "left"), lambda one: _why(one, search)),
    )
    return table_of([one for one in rates if one.kept], figures, ("p50 ms", "max ms", "p99.9 ms"))


def _ms(one: Tried, figure: str) -> str | None:
    latency = from_due(one.run)
    return ms_cell(getattr(latency, figure)) if latency else None


def _why(one: Tried, search: LimitSearch) -> str:
    """Return what the windows at a rate broke, most of all."""
    told = Counter(_kind(text) for trial in one.run.valid for text in broken(trial, search.promise))
    return shortened(", ".join(text for text, _ in told.most_common()), _LONGEST)


def _kind(text: str) -> str:
    """Return what was broken, without by how much."""
    if "failed" in text:
        return "failures"
    return "saturated" if "due" in text else text.split()[0]


# The picture of a search for the highest rate: every window that was tried, and what was promised.


def limit_plots(report: Report) -> Iterator[Plot]:
    """Yield the windows of a search over their rate, a view for each thing that is promised."""
    if report.limit is None:
        return
    views = [
        View(name, data, _layout(name, bound))
        for name, bound in report.limit.promise.bounds.items()
        if (data := list(_marks(report, report.limit, name)))
    ]
    if views:
        note = (
            "A mark is a window. The line is what is promised: a window above it broke it, and so did one "
            "that fell behind."
        )
        yield Plot("What was tried", note, tuple(views), wide=True)


def _layout(name: str, bound_s: float) -> Plain:
    return {
        "xaxis": axis("due in a second"),
        "yaxis": axis(f"{name}, ms", type="log"),
        "shapes": [level(bound_ms, "--bad")] if (bound_ms := finite(bound_s * 1000)) else [],
    }


def _marks(report: Report, search: LimitSearch, name: str) -> Iterator[Plain]:
    for label, wanted, shade in (("kept it", True, "--good"), ("broke it", False, "--bad")):
        points = [
            (one.rate, ms)
            for one in tried(report, search)
            for trial in one.run.valid
            if (not broken(trial, search.promise)) == wanted and (ms := _in_ms(trial, name))
        ]
        if points:
            rates, values = zip(*points, strict=True)
            yield {
                "type": "scatter",
                "mode": "markers",
                "name": label,
                "x": list(rates),
                "y": list(values),
                "text": [whole(rate) for rate in rates],
                "marker": {"color": shade, "size": 9, "opacity": 0.7},
                "hovertemplate": f"%{{text}}/s: {name} %{{y:.3g}} ms",
            }


def _in_ms(trial: Trial, name: str) -> float | None:
    latency = trial.arrived.whole if trial.arrived else None
    if latency is None:
        return None
    ns = latency.max_ns if name == "max" else histogram.percentile(dict(latency.buckets), SHARES[name])
    found = finite(ns)
    return found / NS_PER_MS if found else None
