"""sqlstress limit: the highest rate that holds a promise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from sqlstress.cli.options import GroupedCommand, slice_options, typed, with_options
from sqlstress.errors import UsageError
from sqlstress.studies.limit_options import PROMISED, limit_options

_PROMISED = {option.name: option for option in PROMISED}


@with_options(limit_options())
@click.command(cls=GroupedCommand, epilog="Example: sqlstress limit --p99 10ms --concurrency 4")
@slice_options
def limit(
    directory: Path, outputs: tuple[str, ...], github: bool, quiet: bool, no_progress: bool, **given: Any
) -> int:
    """Find the highest rate at which operations are done as soon as promised, none fails, and none piles up.

    A rate holds when every one of 6 windows kept the promise, and does not hold when none did. What lies
    between can't be told on this machine.
    """
    from sqlstress.cli.measure import command_line, measure
    from sqlstress.cli.saver import Saver
    from sqlstress.engine.session import Session
    from sqlstress.plan import cases_of, parsed
    from sqlstress.report.limit import LimitSearch, Promise
    from sqlstress.studies.limit import LimitStudy

    asked = typed(given)
    own = {name: parsed(option, asked.pop(name, option.default)) for name, option in _PROMISED.items()}
    promise = Promise(own["p50"], own["p99"], own["p999"], own["max"])
    if not promise.bounds:
        raise UsageError("nothing is promised: give --p99 10ms, or --p50, --p999 or --max.")
    spacing, duration = asked.pop("arrival", "poisson"), asked.get("duration")
    cases = cases_of({"concurrency": "4", "warmup": "500ms", **asked, "rate": "1", "arrival": spacing})
    if len(cases) > 1:
        raise UsageError("one number of processes and one of files at a time: the answer is a single one.")
    (case,) = cases
    assert case.arrivals
    study = LimitStudy(
        # It looks for where operations begin to fail: that is no failure.
        replace(case, arrivals=None, repeat=1, max_failed=1.0),
        LimitSearch(promise, own["max-time"]),
        case.arrivals.spacing,
        case.duration_s if duration else None,
    )
    return measure(
        study,
        Session((case,), directory, False, command_line()),
        Saver.of(outputs, github, quiet),
        strict=bool(own["strict"]),
        progress=not (quiet or no_progress),
    )
