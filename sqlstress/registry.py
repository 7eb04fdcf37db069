"""Registry of experiments, and base classes for the format of their cases and results in reports.

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
"""Import string of each experiment's class, by name of the experiment in cases, plans and reports."""

DEFAULT = next(iter(EXPERIMENTS))
"""Name of the experiment of a command line, plan or case that names no experiment."""


class ResultFormat:
    """Format of the result of a study (such as a crash test) in a report."""

    result: ClassVar[type]
    """Dataclass of the result."""
    result_key: ClassVar[tuple[str, str]]
    """Two keys: of an object at the top level of the JSON report, and of the result in this object."""
    label: ClassVar[str]
    """Name of such a study, with its article, such as "a hunt"."""


class ReportFormat:
    """Format of the cases and the result of an experiment in a report."""

    name: ClassVar[str]
    """Name of the experiment in cases, plans and reports."""
    spec: ClassVar[type] = NoOptions
    """Dataclass of the fields that only cases of this experiment have. The fields are options."""
    key: ClassVar[str | None] = None
    """Key of the spec in the JSON of a case. If it is None, the fields of the spec are at its top level."""
    top_level_fields: ClassVar[tuple[str, ...]] = ()
    """Fields of the spec that are at the top level of the case although `key` is set."""
    study: ClassVar[ResultFormat | None] = None
    """Study that chooses which of the requested cases to measure; None if all are measured."""


@cache
def format_of(name: str) -> ReportFormat:
    """Return the only instance of an experiment's class. Raises KeyError for an unknown name."""
    return cast(ReportFormat, resolve_name(EXPERIMENTS[name])())


def all_formats() -> tuple[ReportFormat, ...]:
    """Return the formats of all experiments, in the order of EXPERIMENTS."""
    return tuple(map(format_of, EXPERIMENTS))


def result_formats() -> dict[str, ResultFormat]:
    """Return the result formats of all experiments that are studies, by name of the experiment."""
    return {experiment.name: experiment.study for experiment in all_formats() if experiment.study}
