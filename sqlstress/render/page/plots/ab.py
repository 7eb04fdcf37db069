"""The plot of an A/B test: what each pair said, and the estimate as it narrowed."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp

from sqlstress.analysis.ab import cells, differences
from sqlstress.analysis.wording import finite, place
from sqlstress.gate import tolerance
from sqlstress.render.page.plots.plot import Plain, Plot, View, axis, colour, level, name
from sqlstress.report import AbTest, Look, Report


def plots(report: Report, test: AbTest) -> Iterator[Plot]:
    """Yield the ratios of B to A, pair by pair, and the estimate at each look with its interval."""
    sign = -1 if test.metric == "p99" else 1
    named = zip(cells(report), differences(report, test), strict=True)
    data = [
        _pairs(name(place(a.case)), [exp(sign * one) for one in found], number)
        for number, ((a, _), found) in enumerate(named)
        if found
    ]
    if not data:
        return
    if test.looks:
        data.append(_estimates(test.looks))
    allowed = exp(sign * tolerance(test.metric, test.max_drop).fail_below)
    layout = {
        "xaxis": axis("pair"),
        "yaxis": axis(f"B over A, {'p99' if test.metric == 'p99' else 'TPS'}"),
        "shapes": [level(1.0, "--muted"), level(allowed, "--bad")],
    }
    note = (
        "A mark is a pair. Diamonds: the estimate at each look, with its 95% interval. Red: what is allowed."
    )
    yield Plot("Pair by pair", note, (View("", data, layout),), wide=True)


def _pairs(label: str, ratios: list[float], number: int) -> Plain:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": label,
        "x": list(range(1, len(ratios) + 1)),
        "y": ratios,
        "marker": {"color": colour(number), "size": 8, "opacity": 0.7},
        "hovertemplate": f"{label}, pair %{{x}}: %{{y:.3f}}<extra></extra>",
    }


def _estimates(looks: tuple[Look, ...]) -> Plain:
    known = [look for look in looks if finite(look.ratio) is not None]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "estimate",
        "x": [look.pairs for look in known],
        "y": [look.ratio for look in known],
        "error_y": {
            "array": [max(0.0, (look.high or look.ratio) - look.ratio) for look in known],
            "arrayminus": [max(0.0, look.ratio - (look.low or look.ratio)) for look in known],
            "color": "--ink",
        },
        "marker": {"color": "--ink", "size": 11, "symbol": "diamond"},
        "hovertemplate": "after %{x} pairs: %{y:.3f}<extra></extra>",
    }
