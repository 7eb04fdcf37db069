"""Bars of the classic experiments, side by side in each category."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlstress.show.plots import Plain, View, axis, colour

Bars = Mapping[str, Sequence[tuple[str, float]]]
"""Categories and heights, by the name of their colour."""


def bar_view(label: str, heights: Plain, bars: Bars) -> View:
    """Return a view of bars; `heights` is the axis of their heights."""
    data: list[Plain] = [
        {
            "type": "bar",
            "name": name,
            "marker": {"color": colour(number)},
            "hovertemplate": f"%{{x}}, {name}: %{{y:.3g}}",
            "x": [category for category, _ in of_name],
            "y": [height for _, height in of_name],
        }
        for number, (name, of_name) in enumerate(bars.items())
    ]
    return View(label, data, {"xaxis": axis("", type="category"), "yaxis": heights, "barmode": "group"})
