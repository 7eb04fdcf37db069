"""The progress of an A/B test, on stderr: which pair, the estimate so far, and the time to the next look."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

from sqlstress.analysis.ab import differences, estimate
from sqlstress.analysis.ab_wording import signed
from sqlstress.cli.progress import LAYOUT, clock_text
from sqlstress.report import Report
from sqlstress.statistics.gate import LOOKS, geometric_means

Watch = Callable[[Report], None]


class AbBar:
    """Draws a tqdm bar over the pairs up to the next look."""

    def __init__(self, bar: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._bar, self._clock, self._started = bar, clock, clock()

    def __call__(self, report: Report) -> None:
        """Draw what has been measured by now; called after every slice."""
        assert report.ab
        slices = sum(len(run.trials) for run in report.runs)
        pairs = slices / max(1, report.planned)
        target = next((look.pairs for look in LOOKS if look.pairs >= pairs), LOOKS[-1].pairs)
        left = (self._clock() - self._started) / pairs * (target - pairs) if pairs else 0.0
        self._bar.total, self._bar.n = target, pairs
        self._bar.set_description_str(f"pair {min(int(pairs) + 1, target)} of {target}", refresh=False)
        self._bar.unit = f"{self._so_far(report)}  {clock_text(left):>5} left"
        try:
            self._bar.refresh()
        except OSError:
            pass  # the terminal is gone; the measurement need not be

    def _so_far(self, report: Report) -> str:
        """Return how B differs from A by now: "B/A -2.1% [-8.4% to +3.0%]"."""
        assert report.ab
        means = geometric_means(found) if (found := differences(report, report.ab)) else []
        if not means:
            return "B/A ?"
        now = estimate(means, report.ab.metric, 0.0)
        ends = "" if now.low is None or now.high is None else f" [{signed(now.low)} to {signed(now.high)}]"
        return f"B/A {signed(now.ratio)}{ends}"


@contextmanager
def watcher(visible: bool) -> Iterator[Watch]:
    """Yield what is told after every slice: a bar that is removed at the end, or nobody."""
    if not visible:
        yield lambda report: None
        return
    from tqdm import tqdm

    tqdm.set_lock(RLock())
    with tqdm(
        desc="examining this machine",
        total=float(LOOKS[0].pairs),
        unit="",
        leave=False,
        bar_format=LAYOUT,
        dynamic_ncols=True,
    ) as bar:
        yield AbBar(bar)
