"""A plot as plain data, which the page's chart.js draws; colours are names of the page's style ("--c1").

The names are those that plotly.js has for the same things, as far as they are drawn here: scatter (lines,
markers, steps, error bars, an area below), bar (grouped, stacked, lying) and heatmap; axes that are linear,
log, category or multicategory. Of our own are `multiples`, a small frame for each line, and `whole`, an axis
whose ticks are whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlstress.display.clean import clean

COLOURS = 8
TOGETHER = 4
"""So many lines can be told apart in one frame."""
_LONGEST = 48

Plain = dict[str, Any]


@dataclass(frozen=True, slots=True)
class View:
    """What a plot shows at a time."""

    label: str
    """What it is called where it can be chosen."""
    data: list[Plain]
    """Its traces."""
    layout: Plain
    """Its axes, and what differs from other plots."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot, with one view or several to choose from."""

    title: str
    note: str
    """How to read it, in a sentence or two."""
    views: tuple[View, ...]
    first: int = 0
    """Which view is shown first."""
    wide: bool = False
    """Whether it takes the page's whole width."""


def colour(place: int) -> str:
    """Return the colour of the n-th of several things."""
    return f"--c{place % COLOURS + 1}"


def name(words: str) -> str:
    """Return a text from anywhere as a plot shows it: short, and without a place to be filled in."""
    shown = clean(words)
    return (shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…").replace("%{", "% {")


def level(value: float, shade: str) -> Plain:
    """Return a dotted line across the whole plot."""
    return {
        "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": value, "y1": value,
        "line": {"color": shade, "width": 1, "dash": "dot"},
    }  # fmt: skip


def apart(data: Sequence[Plain]) -> Plain:
    """Return what a layout has more where lines are too many to be told apart in one frame.

    A small frame for each of them then, with the others behind it in the colour of rules.
    """
    named = {trace.get("legendgroup", trace["name"]) for trace in data}
    return {"multiples": True} if len(named) > TOGETHER else {}


def axis(title: str, **more: Any) -> Plain:
    """Return an axis with its title."""
    return {"title": {"text": title}, **more}


def counts_axis(title: str, counts: Iterable[int]) -> Plain:
    """Return an axis of whole numbers, with a tick at each one that was measured, if they are few."""
    found = sorted(set(counts))
    ticks: Plain = {"tickvals": found} if len(found) <= 12 else {}
    return axis(title, whole=True, **ticks)


def line(
    label: str, x: Sequence[Any], y: Sequence[Any], place: int, hover: str, dash: str = "solid"
) -> Plain:
    """Return a line with a mark at each value."""
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": label,
        "x": list(x),
        "y": list(y),
        "line": {"color": colour(place), "width": 2.5, "dash": dash},
        "marker": {"color": colour(place), "size": 7},
        "hovertemplate": hover,
    }
