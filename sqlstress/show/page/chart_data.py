"""The plots of a page, as plain data that its script draws."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, exp, floor, log10

from sqlstress.analysis.ab import cells, differences
from sqlstress.analysis.comparison import Compared, Part
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import finite, place, whole
from sqlstress.experiment import face_of
from sqlstress.report import AbTest, Look, Report
from sqlstress.show.case_table import SYSTEMS
from sqlstress.show.plots import Plain, Plot, View, axis, colour, level, name
from sqlstress.statistics.sequential import tolerance


def report_plots(group: Group) -> Iterator[Plot]:
    """Yield the plots of a group."""
    yield from face_of(group.case).show().plots(group)


def ab_plots(report: Report) -> Iterator[Plot]:
    """Yield the plots of an A/B test; nothing of another report."""
    if report.ab:
        yield from _of_pairs(report, report.ab)


def comparison_plots(compared: Compared) -> Iterator[Plot]:
    """Yield the plots of a table of several reports side by side."""
    names = [_name(part) for part in compared.table.parts]
    yield from face_of(compared.table.parts[0].case).show().compared_plots(compared, names)


def _name(part: Part) -> str:
    system = part.report.environment.host.system
    unknown = "published" if part.report.published is not None else "unknown"
    return name(f"{part.letter} {SYSTEMS.get(system, system) or unknown}")


BESIDE = 0.4
"""How far an estimate stands behind its last pair, which it would hide."""


def _of_pairs(report: Report, test: AbTest) -> Iterator[Plot]:
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
    allowed = exp(sign * tolerance(test.metric, test.max_drop))
    layout = {
        "xaxis": axis("pair", whole=True),
        "yaxis": _ratio_axis(
            f"B over A, {'p99' if test.metric == 'p99' else 'TPS'}",
            [1.0, allowed, *(ratio for trace in data for ratio in trace["y"])],
        ),
        "shapes": [level(1.0, "--muted"), level(allowed, "--bad")],
    }
    note = (
        "A mark is a pair. Diamonds: the estimate at each look, with what it leaves possible. Red: what is "
        "allowed. All above it passes, all below it fails."
    )
    yield Plot("Pair by pair", note, (View("", data, layout),), wide=True)


def _ratio_axis(title: str, ratios: list[float]) -> Plain:
    """Return an axis on which half and twice are as far from 1, with ticks that can be read."""
    low, high = min(ratios), max(ratios)
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    if len(decades) > 4:
        return axis(title, type="log")
    return axis(title, type="log", tickvals=_steps(low, high) or _doublings(decades))


def _steps(low: float, high: float) -> list[float]:
    """Return even steps where all ratios lie near each other, one of them at 1: 0.9, 1, 1.1."""
    step = next((step for step in (0.01, 0.02, 0.05, 0.1, 0.2) if high - low < 8 * step), None)
    if step is None or high > 2 * low:
        return []
    return [round(count * step, 2) for count in range(floor(low / step), ceil(high / step) + 1)]


def _doublings(decades: range) -> list[float]:
    return [step * 10.0**ten for ten in decades for step in (1, 2, 5)]


def _pairs(label: str, ratios: list[float], number: int) -> Plain:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": label,
        "x": list(range(1, len(ratios) + 1)),
        "y": ratios,
        "marker": {"color": colour(number), "size": 8, "opacity": 0.7},
        "hovertemplate": f"{label}, pair %{{x}}: %{{y:.3f}}",
    }


def _ends(look: Look) -> tuple[float, float]:
    """Return what a look left possible; of an old one, which was judged by its estimate, the 95% interval."""
    if look.worst is not None and look.bound is not None:
        low, high = sorted((look.worst, look.bound))
        return low, high
    return look.low or look.ratio, look.high or look.ratio


def _estimates(looks: tuple[Look, ...]) -> Plain:
    known = [look for look in looks if finite(look.ratio) is not None]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "estimate",
        "x": [look.pairs + BESIDE for look in known],
        "text": [whole(look.pairs) for look in known],
        "y": [look.ratio for look in known],
        "error_y": {
            "array": [max(0.0, _ends(look)[1] - look.ratio) for look in known],
            "arrayminus": [max(0.0, look.ratio - _ends(look)[0]) for look in known],
            "color": "--ink",
        },
        "marker": {"color": "--ink", "size": 11, "symbol": "diamond"},
        "hovertemplate": "after %{text} pairs: %{y:.3f}",
    }
