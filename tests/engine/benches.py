"""Benches in a test's folder, without a look at the environment and without signal handlers."""

from dataclasses import replace
from pathlib import Path

from sqlstress.engine.session import Bench
from sqlstress.engine.study import SILENT, Observer
from sqlstress.engine.trial import TrialRunner
from sqlstress.system.interrupt import StopSignals
from tests.example_report import example_report

BLANK = replace(example_report(), runs=(), planned=0)


def bench(
    folder: Path, *, keep: bool = False, signals: StopSignals | None = None, observer: Observer = SILENT
) -> Bench:
    """Return a bench that runs real trials."""
    return Bench(BLANK, TrialRunner(folder, keep, signals or StopSignals(), observer, 0))
