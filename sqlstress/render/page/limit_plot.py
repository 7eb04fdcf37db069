"""The picture of a search for the highest rate: every window that was tried, and what was promised."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.limit import SHARES, broken, tried
from sqlstress.analysis.wording import finite, whole
from sqlstress.display.plot import Plain, Plot, View, axis, level
from sqlstress.report import Report, Trial
from sqlstress.report.limit import LimitSearch
from sqlstress.statistics import histogram
from sqlstress.statistics.units import NS_PER_MS


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
            if (not broken(trial, search.promise)) == wanted and (ms := _ms(trial, name))
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


def _ms(trial: Trial, name: str) -> float | None:
    latency = trial.arrived.whole if trial.arrived else None
    if latency is None:
        return None
    ns = latency.max_ns if name == "max" else histogram.percentile(dict(latency.buckets), SHARES[name])
    found = finite(ns)
    return found / NS_PER_MS if found else None
