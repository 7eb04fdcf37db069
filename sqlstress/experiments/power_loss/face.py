"""Power cuts: a case for each configuration, of which a run is recorded and cut at many points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlstress.errors import UsageError
from sqlstress.experiment import Experiment
from sqlstress.experiments.power_loss.spec import POWER, Extra, Nothing
from sqlstress.options.option import chosen, options_of
from sqlstress.options.parsing import choice, whole
from sqlstress.plan.ask import Ask, check_locking
from sqlstress.report.case import JOURNAL_MODES, SYNCHRONOUS, Case, common, otherwise
from sqlstress.report.traits import layout

_VARIED = ("journal-mode", "synchronous")
MOST_FILES = 100
"""Every image has all of them."""
MOST_CONNECTIONS = 200
"""Of one process, to all files together."""
AUTOCHECKPOINT = 20
"""Frames after which a checkpoint begins, unless told otherwise: so that power is cut in many of them."""

Asked = Ask[Nothing, Extra]


def cases(asked: Asked) -> Iterator[Case]:
    """Yield the cases. Raises UsageError when options don't fit."""
    _check(asked)
    settings = asked.with_settings(busy_timeout_ms=0)
    case = replace(asked.case, driver="apsw", verify="full", settings=settings)
    if not asked.extra.matrix:
        yield case
        return
    for mode in JOURNAL_MODES:
        for level in SYNCHRONOUS:
            yield replace(case, settings=replace(settings, journal_mode=mode, synchronous=level))


def _check(asked: Asked) -> None:
    for name in _VARIED:
        if asked.extra.matrix and name in asked.given:
            raise UsageError(f"--matrix tries every --{name}: leave it out, or say --power.")
    if "driver" in asked.given and asked.case.driver != "apsw":
        raise UsageError("power cuts need --driver apsw: no other one lets us stand in for the disk.")
    buckets = asked.case.buckets
    if buckets > MOST_FILES or buckets * asked.case.concurrency > MOST_CONNECTIONS:
        raise UsageError(
            f"power cuts take {MOST_FILES} files and {MOST_CONNECTIONS} connections to all of them at most: "
            "lower --buckets or --concurrency."
        )
    check_locking(asked, "connection")


POWER_LOSS = Experiment(
    name="power-loss",
    spec=Nothing,
    command="crash",
    chosen_by=("power", "matrix"),
    noun="power cuts",
    options=(
        otherwise("concurrency", parse=whole(1, 256), default=3, varies=False),
        otherwise("buckets", parse=whole(1, 1000), default=1, varies=False),
        *chosen(options_of(Extra)),
        *common("journal-mode", "synchronous", "fullfsync"),
        otherwise("wal-autocheckpoint", default=AUTOCHECKPOINT),
        *common("page-size", "cache-size", "pragma"),
        otherwise("driver", parse=choice("sqlite3", "apsw"), group=POWER),
        *common("seed"),
    ),
    extra=Extra,
    cases=cases,
    in_plans=False,
    study="sqlstress.experiments.power_loss.study:asked",
    result="sqlstress.experiments.power_loss.result:PowerLoss",
    result_key=("crash", "power"),
    called="a crash test",
    shown="sqlstress.experiments.power_loss.shown:PowerLossShown",
    work_of=layout,
    sweeps=True,
)
