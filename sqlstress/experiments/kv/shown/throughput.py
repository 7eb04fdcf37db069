"""What the throughput says: the best point, where it stopped growing, how the layouts compare."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, Point
from sqlstress.analysis.wording import files, listing, percent, processes, rounded, times

NEAR_BEST = 0.95
"""A concurrency that reaches this share of its layout's best gets what there is to get."""

Curve = dict[int, float]
"""TPS by concurrency, in ascending order of concurrency."""


def throughput(group: Group) -> Iterator[Finding]:
    """Yield what the totals of a group say; nothing when only one point was measured."""
    points = group.points()
    if len(points) < 2:
        return
    curves = _curves(points)
    yield from _best(group, points)
    yield from _plateau(curves)
    yield from _still_rising(curves)
    yield from _layouts(curves)


def _curves(points: tuple[Point, ...]) -> dict[int, Curve]:
    curves: dict[int, Curve] = {}
    for point in sorted(points, key=lambda point: (point.files, point.processes)):
        curve = curves.setdefault(point.files, {})
        curve[point.processes] = max(point.tps, curve.get(point.processes, 0.0))
    return curves


def _best(group: Group, points: tuple[Point, ...]) -> Iterator[Finding]:
    best = max(points, key=lambda point: point.tps)
    where = f"{processes(best.processes)} on {files(best.files)}"
    yield Finding("best", f"Best: {rounded(best.tps)} {group.unit} a second, with {where}.")


def _enough(curve: Curve) -> int:
    """Return the smallest concurrency that comes near the best of its layout."""
    best = max(curve.values())
    return next(count for count, tps in curve.items() if tps >= NEAR_BEST * best)


def _plateau(curves: dict[int, Curve]) -> Iterator[Finding]:
    stops = [
        f"after {processes(_enough(curve))} on {files(layout)}"
        for layout, curve in curves.items()
        if _enough(curve) < max(curve)
    ]
    if stops:
        near = percent(1 - NEAR_BEST)
        yield Finding(
            "plateau",
            f"Adding processes stopped helping {listing(stops)}: by then the total was within {near} "
            "of the best.",
        )


def _still_rising(curves: dict[int, Curve]) -> Iterator[Finding]:
    rising = [
        f"{processes(max(curve))} on {files(layout)}"
        for layout, curve in curves.items()
        if len(curve) > 1 and _enough(curve) == max(curve)
    ]
    if rising:
        yield Finding(
            "still-rising",
            f"The total still rose at the most that was measured, {listing(rising)}: "
            "try more with --concurrency.",
        )


def _layouts(curves: dict[int, Curve]) -> Iterator[Finding]:
    (base_files, base), *others = curves.items()
    compared = [text for layout, curve in others if (text := _against(base, layout, curve))]
    if compared:
        yield Finding("layouts", f"Compared with {files(base_files)}: {listing(compared)}.")


def _against(base: Curve, layout: int, curve: Curve) -> str | None:
    """Say how a layout compares at the largest concurrency that both have, and where it does so best."""
    ratios = {count: curve[count] / base[count] for count in curve if count in base}
    if not ratios:
        return None
    largest = max(ratios)
    highest = max(ratios, key=lambda count: ratios[count])
    text = f"{files(layout)} gave {times(ratios[largest])} the throughput at {processes(largest)}"
    if times(ratios[highest]) == times(ratios[largest]):
        return text
    return f"{text} ({times(ratios[highest])} at {highest}, the most)"
