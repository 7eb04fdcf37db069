"""Registry of experiments, and formats of their cases and results in reports.

An experiment is a kind of load or test, such as kv or crash. A study is an experiment that decides which
cases are measured, such as a crash test. A spec is the options that only cases of one experiment have.
"""

from __future__ import annotations

from functools import cache
from pkgutil import resolve_name
from typing import ClassVar, cast

from sqlstress.options.option import NoOptions

EXPERIMENTS: dict[str, str] = {
    "kv": "sqlstress.experiments.kv.experiment:KeyValueExperiment",
    "methods": "sqlstress.experiments.classics.experiment:MethodsExperiment",
    "keys": "sqlstress.experiments.classics.experiment:KeysExperiment",
    "cycles": "sqlstress.experiments.classics.experiment:CyclesExperiment",
    "crash": "sqlstress.experiments.crash.experiment:CrashExperiment",
    "sql": "sqlstress.experiments.sql.experiment:SqlExperiment",
    "classic": "sqlstress.experiments.kv.experiment:ClassicExperiment",
    "exec": "sqlstress.experiments.exec.experiment:ExecExperiment",
    "app": "sqlstress.experiments.app.experiment:AppExperiment",
    "races": "sqlstress.experiments.hunt.experiment:HuntExperiment",
    "watch": "sqlstress.experiments.watch.experiment:WatchExperiment",
}
"""Import string of each experiment's class, by name in cases, plans and reports."""

DEFAULT = next(iter(EXPERIMENTS))
"""Name of the experiment if the user names none."""


class ResultFormat:
    """Type and JSON keys of a study's result in a report, such as the result of a crash test."""

    result: ClassVar[type]
    """Dataclass of the result."""
    result_key: ClassVar[tuple[str, str]]
    """Keys of the result in the JSON report: (key at the top level, key in the object there)."""
    label: ClassVar[str]
    """Name of the study in a sentence, such as "a hunt"."""


class ReportFormat:
    """Type and JSON keys of an experiment's own options, for the cases in a report."""

    name: ClassVar[str]
    """Name in cases, plans and reports."""
    spec: ClassVar[type] = NoOptions
    """Dataclass of options that only cases of this experiment have."""
    key: ClassVar[str | None] = None
    """Key of the object with the spec in a case's JSON; None if the spec's fields are at the top level."""
    top_level_fields: ClassVar[tuple[str, ...]] = ()
    """Fields of the spec that are at the top level of a case's JSON although `key` is set."""
    study: ClassVar[ResultFormat | None] = None
    """Format of the result of the experiment's study; None if the experiment is no study."""


@cache
def format_of(name: str) -> ReportFormat:
    """Return the experiment `name`, the only instance of its class. Raises KeyError for an unknown name."""
    return cast(ReportFormat, resolve_name(EXPERIMENTS[name])())


def all_formats() -> tuple[ReportFormat, ...]:
    """Return the formats of all experiments, in the order of EXPERIMENTS."""
    return tuple(map(format_of, EXPERIMENTS))


def result_formats() -> dict[str, ResultFormat]:
    """Return the result formats of studies, by name of the experiment."""
    return {experiment.name: experiment.study for experiment in all_formats() if experiment.study}
