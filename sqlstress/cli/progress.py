"""The progress bar, on stderr, with the TPS of the moment and the time that is left."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlstress.case import Case
from sqlstress.engine.observer import Nobody, Observer

if TYPE_CHECKING:
    from sqlstress.report import Run

TRIAL_S = 0.7
WORKER_S = 0.05
OPERATION_S = 150e-6
RECENT = 10


def expected_s(case: Case) -> float:
    """Return a guess of how long a case takes, in seconds; the bar corrects it as cases end."""
    load = case.duration_s + case.warmup_s
    if case.ops is not None:
        load = case.ops * case.concurrency * OPERATION_S
    return case.repeat * (load + TRIAL_S + WORKER_S * case.concurrency + min(case.load.key_space * 3e-6, 300))


def describe(case: Case) -> str:
    """Name a case in a few words."""
    files = "1 file" if case.buckets == 1 else f"{case.buckets} files"
    processes = "1 process" if case.concurrency == 1 else f"{case.concurrency} processes"
    return f"{files}, {processes}"


class Bar:
    """An Observer that draws a tqdm bar over the expected seconds."""

    def __init__(self, bar: Any, cases: tuple[Case, ...]) -> None:
        self._bar = bar
        self._expected = [expected_s(case) for case in cases]
        self._finished = 0.0
        self._begun = 0.0
        self._index = 0
        self._case = ""
        self._phase = ""
        self._recent: deque[tuple[float, int]] = deque(maxlen=RECENT)

    def case_begins(self, index: int, total: int, case: Case) -> None:
        self._index, self._begun = index, time.monotonic()
        self._case = f"[{index + 1}/{total}] {describe(case)}"
        self._draw("")

    def phase(self, name: str) -> None:
        self._phase = name
        self._recent.clear()
        self._draw(name)

    def tick(self, operations: int) -> None:
        now = time.monotonic()
        self._recent.append((now, operations))
        (then, before) = self._recent[0]
        rate = (operations - before) / (now - then) if now > then else 0.0
        self._draw(f"{rate:,.0f} TPS" if rate else self._phase)

    def case_ends(self, run: Run) -> None:
        self._finished += self._expected[self._index]
        self._draw("")

    def _draw(self, note: str) -> None:
        expected = self._expected[self._index]
        in_case = min(time.monotonic() - self._begun, expected * 0.99)
        done = min(self._finished + (in_case if self._begun else 0.0), self._bar.total)
        left = self._bar.total - done
        self._bar.n = done
        self._bar.set_description_str(self._case, refresh=False)
        self._bar.set_postfix_str(f"{note + ', ' if note else ''}{left:.0f} s left", refresh=False)
        self._bar.refresh()


@contextmanager
def watcher(cases: tuple[Case, ...], visible: bool) -> Iterator[Observer]:
    """Yield an Observer: a bar that is removed at the end, or nobody."""
    if not visible:
        yield Nobody()
        return
    from tqdm import tqdm

    total = sum(expected_s(case) for case in cases)
    with tqdm(total=total, leave=False, bar_format="{desc} {bar} {postfix}", dynamic_ncols=True) as bar:
        yield Bar(bar, cases)
