"""The one way in which a study is carried out: measured step by step, saved after each, ended."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from sqlstress.engine.observer import NOBODY, Observer
from sqlstress.engine.study import B, Opening, Study
from sqlstress.errors import Interrupted
from sqlstress.report import Report

Save = Callable[[Report], None]
"""Called with the report as it is by then; must not raise."""


def nowhere(_: Report) -> None:
    """Save nothing."""


def carry_out(
    study: Study[B], opening: Opening[B], save: Save = nowhere, observer: Observer = NOBODY
) -> Report:
    """Return what a study found; the report says whether it was interrupted.

    Raises SqlstressError when nothing could be measured at all.
    """
    with opening.opened(observer) as bench:
        return follow(study, bench, save)


def follow(
    study: Study[B], bench: B, save: Save = nowhere, clock: Callable[[], float] = time.monotonic
) -> Report:
    """Do the same with a bench that is open already."""
    saved, saved_at, interrupted = None, -math.inf, False
    try:
        with closing(study.steps(bench)) as steps:
            for _ in steps:
                if clock() - saved_at >= study.save_every_s:
                    saved = study.report(bench.report)
                    save(saved)
                    saved_at = clock()
    except Interrupted:
        interrupted = True
    report = replace(study.report(bench.report), interrupted=interrupted)
    if report.holds_something and report != saved:
        save(report)
    return report
