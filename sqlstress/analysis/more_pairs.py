"""What would decide an A/B test that ended inconclusive: more pairs, longer slices, or another question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from sqlstress.analysis.wording import finite, percent, plural
from sqlstress.report import AbTest, Report
from sqlstress.statistics.gate import ALPHA, FEWEST, MOST, tolerance
from sqlstress.statistics.paired import bounds, hodges_lehmann
from sqlstress.statistics.units import format_duration

NEAR = 1 / 3
"""Of the distance from no change to what is allowed: nearer to it, more pairs show little."""
_SPARE = 1.1
"""How much more time than the pairs took so far."""


def what_would_help(differences: Sequence[float], report: Report, test: AbTest) -> str:
    """Return what would decide it, by the scatter of its own pairs, as one or two sentences."""
    alpha = test.looks[-1].alpha if test.looks and 0 < test.looks[-1].alpha < 0.5 else ALPHA
    ends, allowed = bounds(differences, alpha), tolerance(test.metric, test.max_drop)
    if ends is None:
        return f"Nothing is shown by fewer than {FEWEST} pairs: give it more time (--max-time)."
    half, gap = (ends[1] - ends[0]) / 2, abs(hodges_lehmann(differences) - allowed)
    if_equal = _needed(len(differences), half, abs(allowed))
    if if_equal is None or if_equal > (test.max_pairs or MOST):
        return _too_noisy(differences, if_equal, report, test)
    needed = _needed(len(differences), half, gap)
    if needed is None or gap < abs(allowed) * NEAR:
        return "It is near what is allowed, where no number of pairs decides: ask for another --max-drop."
    if needed > MOST:
        return f"About {plural(needed, 'pair')} would decide it, if it stays so: {_longer(report, needed)}."
    return f"About {plural(needed, 'pair')} would decide it, if it stays so{_options(needed, test)}."


def _needed(pairs: int, half: float, gap: float) -> int | None:
    """Return after how many pairs bounds that are `half` wide on each side are as wide as the gap.

    They narrow with the root of the number. None where no number is enough, or it is none to be written.
    """
    wanted = finite(pairs * (half / gap) ** 2) if gap and 0 < half / gap < 1000 else None
    return None if wanted is None else _round_up(max(wanted, pairs + 1))


def _round_up(number: float) -> int:
    """Return a whole number of two significant digits, as large or larger."""
    step: int = 10 ** max(0, math.floor(math.log10(number)) - 1)
    return math.ceil(number / step) * step


def _too_noisy(differences: Sequence[float], needed: int | None, report: Report, test: AbTest) -> str:
    centre = hodges_lehmann(differences)
    scatter = finite(math.expm1(min(median(abs(one - centre) for one in differences), 700.0)))
    noise = f"half of the pairs lie {percent(scatter or 0.0)} or more from the estimate"
    said = f"The machine is too noisy for this question: {noise}"
    if needed is None:
        return f"{said}. Measure {_longer(report, 10 * len(differences))}."
    enough = f"if B is like A, about {plural(needed, 'pair')} would show it"
    if needed <= MOST:
        return f"{said}; {enough}{_options(needed, test)}, or fewer with {_longer(report, needed)}."
    return f"{said}; {enough}. Measure {_longer(report, needed)}."


def _options(pairs: int, test: AbTest) -> str:
    """Return the options that allow for so many pairs, in brackets; "" where those given do."""
    wanted = [f"--max-pairs {pairs}"] if pairs > (test.max_pairs or 0) else []
    last = test.looks[-1] if test.looks else None
    if last and last.seconds and last.pairs:
        seconds = _SPARE * pairs * last.seconds / last.pairs
        if seconds > (test.max_time_s or 0.0):
            wanted.append(f"--max-time {math.ceil(seconds / 60)}m")
    return f" ({' '.join(wanted)})" if wanted else ""


def _longer(report: Report, needed: int) -> str:
    """Return which slices would need fewer pairs, and where."""
    case = report.runs[0].case
    quiet = "where less else is running"
    if case.ops is not None or not case.duration_s:
        return f"longer slices, or {quiet}"
    times = min(10, max(2, math.ceil(needed / MOST)))
    return f"longer slices (--duration {format_duration(case.duration_s * times)}), or {quiet}"
