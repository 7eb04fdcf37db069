"""What was asked for: the values of options, as the dataclasses that cases are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Generic, TypeVar, cast

from sqlstress.errors import UsageError
from sqlstress.experiment import Experiment
from sqlstress.options.option import has_default, options_of
from sqlstress.report.arrivals import Arrivals
from sqlstress.report.case import Case, Settings

S = TypeVar("S")
E = TypeVar("E")
T = TypeVar("T")


@dataclass(frozen=True)
class Ask(Generic[S, E]):
    """The options of one experiment: S is its spec, E what says only which cases there are."""

    case: Case
    """The first of the cases that were asked for, as far as the options say it; its spec is `spec`."""
    extra: E
    lists: Mapping[str, tuple[Any, ...]]
    """The values of the options of which each case has one, by name."""
    given: frozenset[str]
    """The names of the options that were given."""

    @property
    def spec(self) -> S:
        """What only cases of this experiment have."""
        return cast(S, self.case.spec)

    @property
    def settings(self) -> Settings:
        """How every connection is opened."""
        return self.case.settings

    @property
    def most_processes(self) -> int:
        """The largest number of processes."""
        return cast(int, max(self.lists.get("concurrency", (self.case.concurrency,))))

    def some(self, name: str) -> tuple[Any, ...]:
        """Return the values of an option of which each case has one."""
        return self.lists[name]

    def with_settings(self, **changes: Any) -> Settings:
        """Return the settings, changed."""
        return replace(self.settings, **changes)


def ask(experiment: Experiment, values: Mapping[str, Any], given: frozenset[str]) -> Ask[Any, Any]:
    """Return what parsed values by option name ask for."""
    lists = {one.name: values[one.name] or (None,) for one in experiment.options if one.varies}
    first = {**values, **{name: several[0] for name, several in lists.items()}}
    window = {} if "duration" in values else {"duration_s": 0.0, "warmup_s": 0.0}
    arrivals = None if first.get("rate") is None else built(Arrivals, first)
    case = built(
        Case,
        first,
        workload=experiment.name,
        arrivals=arrivals,
        settings=built(Settings, first),
        spec=built(experiment.spec, first),
        **window,
    )
    return Ask(case, built(experiment.extra, values) if experiment.extra else None, lists, given)


def built(cls: type[T], values: Mapping[str, Any], **known: Any) -> T:
    """Return a dataclass whose fields are options from their values; what has no value keeps its default.

    What only the experiment itself can say, such as the scale of a cell, is None until it does.
    """
    known_options = options_of(cast(Any, cls)).items()
    found = {name: values[option.name] for name, option in known_options if option.name in values}
    for one in fields(cast(Any, cls)):
        if one.name not in found and one.name not in known and is_dataclass(one.default):
            found[one.name] = built(type(cast(Any, one.default)), values)
    unsaid = {
        one.name: None for one in fields(cast(Any, cls)) if one.name not in found and not has_default(one)
    }
    return cls(**{**unsaid, **found, **known})


def is_exclusive(settings: Settings) -> bool:
    """Return whether one connection locks a database for itself."""
    return any(name == "locking_mode" and value.lower() == "exclusive" for name, value in settings.pragmas)


def check_locking(asked: Ask[Any, Any], who: str = "process") -> None:
    """Raise UsageError when several are to share what one locks for itself."""
    if is_exclusive(asked.settings) and asked.most_processes > 1:
        raise UsageError(
            f"PRAGMA locking_mode=exclusive lets one {who} in: use it with --concurrency 1 only."
        )
