"""When a trial's window opens and closes, and whether all workers were there in time."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstress.engine.loop import FOREVER_NS, Window
from sqlstress.engine.pool import Ended
from sqlstress.experiment import has_window
from sqlstress.report.case import Case
from sqlstress.statistics.units import NS_PER_S

LEAD_S = 0.02
"""How long before the common start the window is announced, where everybody hears of it at once."""
ANSWERS = 2.0
"""By how many times as long as all processes took to answer a call it is announced earlier."""


def lead_s(answer_s: float) -> float:
    """Return how long before the common start the window is announced; `answer_s`: how long all took to
    answer a call.
    """
    return LEAD_S + ANSWERS * answer_s


def plan_window(case: Case, now_ns: int, answer_s: float, extra_s: float = 0.0) -> Window:
    """Return the window, far enough ahead that every worker hears of it in time.

    By `extra_s` the window opens later: the warm-up is longer, or where none is wanted, the start is
    announced earlier.
    """
    return window_at(case, now_ns + int(lead_s(answer_s) * NS_PER_S), extra_s)


def window_at(case: Case, starts_ns: int, extra_s: float = 0.0) -> Window:
    """Return the window of a load that starts then."""
    if not has_window(case):
        return Window(starts_ns, starts_ns, FOREVER_NS)
    opens = starts_ns + int((case.warmup_s + extra_s) * NS_PER_S)
    starts = starts_ns if case.warmup_s else opens
    return Window(starts, opens, opens + int(case.duration_s * NS_PER_S))


def lateness_s(case: Case, window: Window, ended: Sequence[Ended]) -> float:
    """Return how long the window was open when the last worker reached its loop; 0 when all were in time,
    and where one has died: a trial that is late is run again, and a death is not to be lost thereby.
    """
    done = [one.done for one in ended if one.done]
    if window.closes_ns == FOREVER_NS or len(done) < len(ended):
        return 0.0
    # One that never began has not done so by the end of the window.
    begins = [one.totals.first_ns or window.closes_ns for one in done]
    late_s = (max(begins, default=0) - window.opens_ns) / NS_PER_S
    # Without a warm-up the window opens at the common start itself, which nobody meets to the nanosecond.
    tolerance_s = 0.0 if case.warmup_s else max(0.02, case.duration_s / 50)
    return late_s if late_s > tolerance_s else 0.0
