"""Crash tests of the corpus."""

from dataclasses import replace
from functools import partial

from sqlstress.experiments.crash.spec import Kills
from sqlstress.report import Report
from tests.example_report import corpus_report

_PROVED = corpus_report("crash").results["crash"]
assert isinstance(_PROVED, Kills)
KILLS = _PROVED
lost_report = partial(corpus_report, "crash-lost")
"""A crash test that lost acknowledged transactions."""
empty_report = partial(corpus_report, "crash-empty")
"""An interrupted crash test, in which the writers died before their first acknowledgement."""


def crash_report(kills: Kills = KILLS) -> Report:
    """Return the report of a crash test."""
    return replace(corpus_report("crash"), results={"crash": kills})
