"""What the options of a search ask for: the study, over the cases of its load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlstress.engine.study import Asked, ReadWords
from sqlstress.errors import UsageError
from sqlstress.experiments.tune.face import OTHERWISE
from sqlstress.experiments.tune.result import Tuning
from sqlstress.experiments.tune.space import Options, Space, factors_of
from sqlstress.experiments.tune.spec import Patience
from sqlstress.experiments.tune.study import TuneStudy
from sqlstress.options.option import options_of
from sqlstress.plan import cases_of, parsed, seeded
from sqlstress.report.case import Case


def asked(given: Mapping[str, Any], _: ReadWords) -> Asked:
    """Return the study that options ask for, as they were typed. Raises UsageError."""
    known = {one.name: one for one in options_of(Patience).values()}
    own = {name: parsed(option, given.get(name, option.default)) for name, option in known.items()}
    load = {name: value for name, value in given.items() if name not in known}
    usual = {name: said["default"] for name, said in OTHERWISE.items() if "default" in said}
    planned = seeded({**usual, **load})
    cases = cases_of(planned)
    buckets = list(dict.fromkeys(case.buckets for case in cases))
    if len(cases) > len(buckets):
        raise UsageError("one number of processes at a time: what is best for 2 need not be for 8.")

    def plan(options: Options) -> Case:
        (case,) = cases_of({**planned, "buckets": buckets[0], **options})
        # What fails for a busy database is part of what a setting does, and no failure.
        return replace(case, repeat=1, max_failed=1.0)

    base = plan({})
    factors = factors_of(load, base, buckets)
    tuning = Tuning(base, tuple(factor.name for factor in factors), own["max-time"])
    return Asked(TuneStudy(tuning, Space(factors, plan)), (base,), bool(own["strict"]))
