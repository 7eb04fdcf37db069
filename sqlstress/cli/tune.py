"""sqlstress tune: settings that do more here, without changing what is promised."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sqlstress.cli.options import GroupedCommand, slice_options, typed, with_options
from sqlstress.errors import UsageError
from sqlstress.experiments.tune.spec import PATIENCE
from sqlstress.studies.tune_options import defaults, tune_options

if TYPE_CHECKING:
    from sqlstress.experiments.tune.space import Options
    from sqlstress.report.case import Case

_PATIENCE = {option.name: option for option in PATIENCE}


@with_options(tune_options())
@click.command(cls=GroupedCommand, epilog="Example: sqlstress tune --concurrency 4 --synchronous normal")
@slice_options
def tune(
    directory: Path, outputs: tuple[str, ...], github: bool, quiet: bool, no_progress: bool, **given: Any
) -> int:
    """Search settings that do more on this machine, and end with a line to paste, or with "as good".

    Searched are checkpoints, page size, cache, mmap, how the lock is waited for, and with --buckets 1,4 the
    number of files; never journal mode, synchronous or batch. What is given stays.
    """
    from sqlstress.cli.measure import command_line, measure
    from sqlstress.cli.saver import Saver
    from sqlstress.engine.session import Session
    from sqlstress.experiments.tune.result import Tuning
    from sqlstress.experiments.tune.space import Space, factors_of
    from sqlstress.experiments.tune.study import TuneStudy
    from sqlstress.plan import cases_of, parsed, seeded

    asked = typed(given)
    own = {name: parsed(option, asked.pop(name, option.default)) for name, option in _PATIENCE.items()}
    load = seeded({**defaults(asked), **asked})
    cases = cases_of(load)
    buckets = list(dict.fromkeys(case.buckets for case in cases))
    if len(cases) > len(buckets):
        raise UsageError("one number of processes at a time: what is best for 2 need not be for 8.")

    def plan(options: Options) -> Case:
        (case,) = cases_of({**load, "buckets": buckets[0], **options})
        # What fails for a busy database is part of what a setting does, and no failure.
        return replace(case, repeat=1, max_failed=1.0)

    base = plan({})
    factors = factors_of(asked, base, buckets)
    tuning = Tuning(base, tuple(factor.name for factor in factors), own["max-time"])
    return measure(
        TuneStudy(tuning, Space(factors, plan)),
        Session((base,), directory, False, command_line()),
        Saver.of(outputs, github, quiet),
        strict=bool(own["strict"]),
        progress=not (quiet or no_progress),
    )
