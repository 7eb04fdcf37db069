"""The hunt of the corpus, and hunts that differ from it."""

from __future__ import annotations

from dataclasses import replace

from sqlstress.experiments.hunt.result import BUILTIN_LOAD, Hunt
from sqlstress.experiments.hunt.spec import Schedule
from sqlstress.report import Check, Report, Verdict
from tests.example_report import corpus_report

_KEPT = corpus_report("hunt").results[BUILTIN_LOAD]
assert isinstance(_KEPT, Hunt)
assert _KEPT.found
HUNT = _KEPT
NOTHING = replace(HUNT, found=None, smallest=None, known=None, rounds=41, seconds=60.2)
IN_WORK = replace(
    HUNT,
    work="app",
    operations={"transfer": 812},
    found=replace(
        _KEPT.found,
        verdict=Verdict((Check("checks after the load", "failed", 1, 1, ("there are 9,990",)),)),
        schedule=Schedule(("write-lock",), 2, 0.005),
        failed=0,
    ),
    smallest=None,
)


def hunt_report(hunt: Hunt = HUNT) -> Report:
    """Return the report of a hunt."""
    return replace(corpus_report("hunt"), results={BUILTIN_LOAD: hunt})
