"""Draws the picture of the README from a kept report: python -m benchmarks.picture.

Of another report with several numbers of processes: python -m benchmarks.picture REPORT.json OUT.svg.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import sqlstress
from sqlstress.analysis.durability import describe_durability
from sqlstress.analysis.wording import buckets
from sqlstress.report import write_atomically
from sqlstress.statistics.units import format_count

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "reports" / "linux-1-and-20-files.json"
PICTURE = ROOT / "docs" / "one-and-twenty-files.svg"

NS_PER_MS = 1_000_000
WIDTH, HEIGHT = 860, 330
TOP, BOTTOM = 78, 282
"""The upper and the lower edge of both plots, in pixels."""
STYLE = """
  text { font: 13px system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; fill: #5b6570 }
  .title { font-size: 15px; font-weight: 600; fill: #1b1f24 }
  .paper { fill: #ffffff; stroke: #dfe3e8 }
  .rule { stroke: #dfe3e8 }
  .line { fill: none; stroke-width: 2.5 }
  .one { stroke: #0072b2 } .one-dot { fill: #0072b2 } text.one-name { fill: #0072b2; font-weight: 600 }
  .two { stroke: #d55e00 } .two-dot { fill: #d55e00 } text.two-name { fill: #d55e00; font-weight: 600 }
  @media (prefers-color-scheme: dark) {
    text { fill: #9aa4af } .title { fill: #e6e9ed } .paper { fill: #14171b; stroke: #303741 }
    .rule { stroke: #303741 }
    .one { stroke: #56b4e9 } .one-dot { fill: #56b4e9 } text.one-name { fill: #56b4e9 }
    .two { stroke: #f0883e } .two-dot { fill: #f0883e } text.two-name { fill: #f0883e }
  }
"""
COLOURS = ("one", "two")

Curve = list[tuple[int, float]]
"""A value for each number of processes, in ascending order of these."""


@dataclass(frozen=True)
class Plot:
    """Position of a plot, and its scale from values to heights."""

    title: str
    left: int
    right: int
    ticks: Sequence[float]
    """Values with a line across, in ascending order; the first and the last are the plot's edges."""
    scale: Callable[[float], float]

    def y(self, value: float) -> float:
        """Return the pixels from the picture's upper edge."""
        low, high = self.scale(self.ticks[0]), self.scale(self.ticks[-1])
        return BOTTOM - (self.scale(value) - low) / (high - low) * (BOTTOM - TOP)


def picture(report: sqlstress.Report) -> str:
    """Return an SVG of total throughput and longest wait by the number of processes, a line for each layout.

    Raises ValueError for a report whose cases have no two numbers of processes, or over two layouts.
    """
    totals = _curves(report, lambda figure: figure.tps)
    waits = _curves(report, lambda figure: (figure.longest_wait_ns or 0) / NS_PER_MS or None)
    counts = sorted({count for curve in totals.values() for count, _ in curve})
    if len(counts) < 2 or len(totals) > len(COLOURS):
        raise ValueError("the picture is of one or two layouts, each with several numbers of processes")
    together = Plot("Transactions a second, all processes", 70, 400, _even(_highest(totals)), float)
    longest = Plot("Longest wait for an answer, ms", 490, 820, _decades(waits), math.log10)
    drawn = [*_plot(together, counts, totals), *_plot(longest, counts, waits)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
            f"<title>{escape(_subtitle(report))}</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="paper" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8"/>',
            _text(20, 26, _subtitle(report)),
            *drawn,
            "</svg>\n",
        ]
    )


def _curves(report: sqlstress.Report, value: Callable[[sqlstress.Figure], float | None]) -> dict[int, Curve]:
    """Return a curve for each number of buckets."""
    curves: dict[int, Curve] = {}
    for figure in sorted(report.figures, key=lambda figure: (figure.case.buckets, figure.case.concurrency)):
        if (found := value(figure)) is not None:
            curves.setdefault(figure.case.buckets, []).append((figure.case.concurrency, found))
    return curves


def _subtitle(report: sqlstress.Report) -> str:
    """Return a line on the system and the durability of the measurement."""
    environment = report.environment
    effective = next(trial.effective for run in report.runs for trial in run.trials if trial.effective)
    where = f"{environment.host.system}, {environment.host.cores} cores, {environment.file_system.kind}"
    return f"{where}. {describe_durability(effective, environment.sync)}"


def _highest(curves: dict[int, Curve]) -> float:
    return max(value for curve in curves.values() for _, value in curve)


def _even(highest: float) -> list[float]:
    """Return ticks from 0 to a round number that is no smaller than the highest value."""
    steps = (digit * 10**power for power in range(12) for digit in (1, 2, 5))
    step = next(size for size in steps if size * 5 >= highest)
    return [step * number for number in range(math.ceil(highest / step) + 1)]


def _decades(curves: dict[int, Curve]) -> list[float]:
    """Return powers of ten around all values."""
    values = [value for curve in curves.values() for _, value in curve]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return [10.0**power for power in range(low, max(high, low + 1) + 1)]


def _plot(plot: Plot, counts: Sequence[int], curves: dict[int, Curve]) -> Iterator[str]:
    yield _text(plot.left, TOP - 18, plot.title, "title")
    for tick in plot.ticks:
        y = plot.y(tick)
        yield f'<path class="rule" d="M{plot.left} {y:.1f}H{plot.right}"/>'
        yield _text(plot.left - 8, y + 4, format_count(tick), anchor="end")
    inner = plot.right - plot.left - 60
    x = {count: plot.left + 20 + inner * number / (len(counts) - 1) for number, count in enumerate(counts)}
    for count in counts:
        yield _text(x[count], BOTTOM + 20, str(count), anchor="middle")
    yield _text((x[counts[0]] + x[counts[-1]]) / 2, BOTTOM + 38, "processes", anchor="middle")
    for colour, (layout, curve) in zip(COLOURS, curves.items(), strict=False):
        points = [(x[count], plot.y(value)) for count, value in curve]
        yield from _line(colour, buckets(layout), points)


def _line(colour: str, name: str, points: Iterable[tuple[float, float]]) -> Iterator[str]:
    points = list(points)
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    yield f'<polyline class="line {colour}" points="{path}"/>'
    yield from (f'<circle class="{colour}-dot" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in points)
    x, y = points[-1]
    yield _text(x + 8, y + 4, name, f"{colour}-name")


def _text(x: float, y: float, text: str, style: str = "", anchor: str = "start") -> str:
    named = f' class="{style}"' if style else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


if __name__ == "__main__":
    source, target = sys.argv[1:] or (REPORT, PICTURE)
    write_atomically(Path(target), picture(sqlstress.read(source)))
