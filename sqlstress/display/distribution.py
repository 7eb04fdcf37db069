"""How many operations took how long: the outline of a histogram."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache

from sqlstress.analysis.wording import place
from sqlstress.display.plot import Plain, Plot, View, axis, colour, line, name
from sqlstress.report import Latency
from sqlstress.report.case import Case
from sqlstress.statistics.histogram import bucket_floor
from sqlstress.statistics.units import NS_PER_MS

_NOTE = "How many operations took how long, eight steps for every doubling."
_COARSER = 4
"""Bits by which a histogram is made coarser: to eight buckets for every power of two."""
_BUCKETS = 0x7F80
"""Indices of finite floats lie below."""


def distributions(
    title: str, cases: Iterable[tuple[Case, Iterable[tuple[str, Latency | None]]]]
) -> Iterator[Plot]:
    """Yield a plot with a view for each case, with an outline of each of its latencies; none of none."""
    views = []
    for case, named in cases:
        data = [
            outline
            for number, (label, latency) in enumerate(named)
            if latency and (outline := _outline(label, latency, number))
        ]
        if data:
            axes = {
                "xaxis": axis("ms", type="log"),
                "yaxis": axis("% of operations", rangemode="tozero"),
                "hovermode": "x",
            }
            views.append(View(place(case), data, axes))
    if views:
        yield Plot(title, _NOTE, tuple(views), len(views) - 1)


def _outline(kind: str, latency: Latency, number: int) -> Plain | None:
    """Return the outline, a point for each step, in per cent of all operations; None of none."""
    coarse: Counter[int] = Counter()
    for index, count in latency.buckets:
        if 0 <= index < _BUCKETS and count > 0:
            coarse[index >> _COARSER] += count
    total = sum(coarse.values())
    if not total:
        return None
    # With a step of nothing on each side the outline comes back to zero.
    steps = range(max(0, min(coarse) - 1), min(max(coarse) + 2, _BUCKETS >> _COARSER))
    trace = line(
        name(kind),
        [_middle_ms(step) for step in steps],
        [100 * coarse[step] / total for step in steps],
        number,
        "%{x:.3g} ms: %{y:.2f}%",
    )
    return {
        **trace,
        "mode": "lines",
        "line": {"color": colour(number), "width": 1.8, "shape": "hvh"},
        "fill": "tozeroy",
        "fillcolor": f"{colour(number)}-fill",
    }


@cache
def _middle_ms(step: int) -> float:
    low, high = (bucket_floor(each << _COARSER) for each in (step, step + 1))
    return (low + high) / 2 / NS_PER_MS
