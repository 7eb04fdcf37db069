"""Registry of the experiments, and base classes for the format of their cases and results in reports.

`sqlstress.experiment` has the base class with everything else that an experiment defines.
"""

from __future__ import annotations

from functools import cache
from pkgutil import resolve_name
from typing import Any, ClassVar, cast

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
"""Import string of each experiment's class, by its name in cases, plans and reports."""

DEFAULT = next(iter(EXPERIMENTS))
"""Experiment of a command line, plan or case that names none."""


class ResultFormat:
    """Result of a study, as a report stores it."""

    result: ClassVar[type]
    """Dataclass of the result."""
    result_key: ClassVar[tuple[str, str]]
    """Place in the JSON of a report: an object, and the result's key in it."""
    label: ClassVar[str]
    """Name of such a study, with its article, such as "a hunt"."""


class ReportFormat:
    """Cases and result of an experiment, as a report stores them."""

    name: ClassVar[str]
    """Name in cases, plans and reports."""
    spec: ClassVar[type] = NoOptions
    """Dataclass of the fields that only cases of this experiment have; they are options."""
    key: ClassVar[str | None] = None
    """Key of the spec in the JSON of a case; None stores its fields next to the fields of all cases."""
    top_level_fields: ClassVar[tuple[str, ...]] = ()
    """Fields of the spec that are stored next to the fields of all cases, although `key` is set."""
    study: ClassVar[ResultFormat | None] = None
    """Study that decides which cases are measured; None if each case is measured, as often as requested."""


@cache
def _instance(target: str) -> Any:
    return resolve_name(target)()


def format_of(name: str) -> ReportFormat:
    """Return the format of the experiment with this name. Raises KeyError."""
    return cast(ReportFormat, _instance(EXPERIMENTS[name]))


def all_formats() -> tuple[ReportFormat, ...]:
    """Return the formats of all experiments, in their order."""
    return tuple(map(format_of, EXPERIMENTS))


def result_formats() -> dict[str, ResultFormat]:
    """Return the formats of the results of studies, by the name of their experiment."""
    return {experiment.name: experiment.study for experiment in all_formats() if experiment.study}
