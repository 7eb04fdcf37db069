"""Plan: flags or a TOML file become a list of Cases."""

from __future__ import annotations

import secrets
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from sqlstress.errors import NoWork, UsageError
from sqlstress.experiment import Experiment, all_experiments, commands, get_experiment
from sqlstress.options.option import REMOVED, Option, has_default, options_of
from sqlstress.options.parsing import NEAREST, sentence, shown, suggestion
from sqlstress.registry import DEFAULT
from sqlstress.report.case import Arrivals, Case, Settings
from sqlstress.request import Request
from sqlstress.system.files import read_text

T = TypeVar("T")


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


MOST_CASES = 1000


class Planned(NamedTuple):
    """What is to be measured."""

    cases: tuple[Case, ...]
    experiment: Experiment | None = None
    """The one whose options asked for it; None: a plan, whose cases are of any."""
    selection: Any = None
    """Its options that stand in no case."""


def options_of_command(command: str) -> tuple[Option, ...]:
    """Return the options of a command: those of the experiment that it measures."""
    return commands()[command].options


def parsed(option: Option, value: Any) -> Any:
    """Parse one option's value; raises UsageError that names the option."""
    try:
        return None if value is None else option.parse(value)
    except ValueError as error:
        name = option.name.upper() if option.argument else f"--{option.name}"
        raise UsageError(f"{name}: {sentence(error)}") from error


def all_parsed(options: Iterable[Option], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of options by name: as they are given, unparsed, else their defaults."""
    return {one.name: parsed(one, given.get(one.name, one.default)) for one in options}


def options_of_load(
    command: str, otherwise: Mapping[str, Mapping[str, Any]], left_out: Collection[str]
) -> tuple[Option, ...]:
    """Return the options of a load that a study measures: what some are there otherwise, without others."""
    return tuple(
        replace(known, **otherwise.get(known.name, {}))
        for known in get_experiment(command).options
        if known.name not in left_out
    )


def fixed_options(command: str) -> dict[str, Any]:
    """Return the options that have one value when a study measures a single case."""
    values = get_experiment(command).single_case_values
    return {name: value for name, value in values.items() if value is not None}


def planned(given: Mapping[str, Any], command: str = DEFAULT) -> Planned:
    """Return what one set of options asks for.

    `given` holds unparsed values by option name; what is missing or None has its default. Raises UsageError,
    also for more cases than anybody waits for, before they take memory.
    """
    given = {name: value for name, value in seeded(given).items() if value is not None}
    experiment = commands()[command]
    known = {option.name: option for option in experiment.options}
    for name in given:
        if name not in known:
            raise UsageError(_stray(experiment, command, name))
    values = {name: option.value for name, option in known.items()}
    values |= {name: parsed(known[name], value) for name, value in given.items()}
    lists = {name: values[name] or (None,) for name, option in known.items() if option.varies}
    first_values = {**values, **{name: several[0] for name, several in lists.items()}}
    window = {} if "duration" in values else {"duration_s": 0.0, "warmup_s": 0.0}
    case = built(
        Case,
        first_values,
        workload=experiment.name,
        arrivals=None if first_values.get("rate") is None else built(Arrivals, first_values),
        settings=built(Settings, first_values),
        spec=built(experiment.spec, first_values),
        **window,
    )
    selection: Any = built(experiment.selection, values)
    request: Request[Any, Any] = Request(case, selection, lists, frozenset(given))
    cases = tuple(islice(experiment.cases(request), MOST_CASES + 1))
    check_count(len(cases))
    return Planned(cases, experiment, selection)


def _stray(experiment: Experiment, command: str, name: str) -> str:
    """Say what an option is for that the experiment has not got."""
    if text := REMOVED.get(name):
        return text
    if why := experiment.unsupported.get(name):
        return f"--{name}: {why}."
    known = [option.name for option in experiment.options]
    return f"--{name} is not an option of {command}.{suggestion(name, known)}"


def cases_of(given: Mapping[str, Any], command: str = DEFAULT) -> tuple[Case, ...]:
    """Return the cases of one set of options. Raises UsageError."""
    return planned(given, command).cases


def seeded(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with a seed: a random one, unless one is given."""
    seed = given.get("seed")
    return {**given, "seed": secrets.randbelow(1 << 32) if seed is None else seed}


def check_count(cases: int) -> None:
    """Raise UsageError for more cases than anybody waits for."""
    if cases > MOST_CASES:
        raise UsageError(f"the plan has more than {MOST_CASES:,} cases. Split it.")


# A plan in a TOML file: options at the top are defaults, each [[case]] has its own.


LARGEST = 128 << 10
"""Bytes of a plan: a thousand cases of a hundred bytes."""
LONGEST_LINE = 500
"""Characters of a line: tomllib takes time and memory that grow with the square of a dotted key's length."""


def from_toml(path: Path) -> tuple[Case, ...]:
    """Return the cases of a plan: options at the top are defaults, each [[case]] has its own.

    Raises UsageError that names the file and the case.
    """
    document = _read(path)
    tables = document.pop("case", None)
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        names = [name for name, value in document.items() if isinstance(value, list | dict)]
        near = next((name for name in names if suggestion(name, ["case"])), None)
        misspelt = f" It has [[{near}]]: rename it." if near else ""
        raise UsageError(f"{path}: a plan needs at least one [[case]].{misspelt}")
    document = seeded(document)
    workloads = [one.name for one in all_experiments() if one.allowed_in_plans]
    known = {name: {option.name for option in options_of_command(name)} for name in workloads}
    planned: list[Case] = []
    named = (table.get("workload", document.get("workload")) for table in tables)
    # The options that any workload of the plan has: a default that belongs to another one is not for a case.
    elsewhere = {name for one in named if isinstance(one, str) for name in known.get(one, ())}
    for number, table in enumerate(tables, 1):
        try:
            planned += _cases(document, table, known, elsewhere)
            check_count(len(planned))
        except NoWork as error:
            raise UsageError(f"{path}, case {number}: {error.assigned}") from error
        except UsageError as error:
            raise UsageError(f"{path}, case {number}: {error}") from error
    return tuple(planned)


def _read(path: Path) -> dict[str, Any]:
    try:
        text = read_text(path, LARGEST)
        long = next((i for i, line in enumerate(text.split("\n"), 1) if len(line) > LONGEST_LINE), None)
        if long:
            raise ValueError(f"line {long} has more than {LONGEST_LINE} characters")
        return tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"cannot read the plan {path}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        # tomllib lets more than its own TOMLDecodeError through, such as for huge numbers.
        raise UsageError(f"{path} is not a TOML file: {error!s:.160}.") from error


def _cases(
    document: Mapping[str, Any], table: Mapping[str, Any], known: Mapping[str, set[str]], elsewhere: set[str]
) -> tuple[Case, ...]:
    """Return the cases of one [[case]]; `known` are the options of each workload."""
    workload = table.get("workload", document.get("workload"))
    if not isinstance(workload, str) or workload not in known:
        if workload is None:
            raise UsageError(f"workload is missing. Give one of {', '.join(known)}.")
        near = suggestion(workload, known, NEAREST)
        raise UsageError(f"workload = {shown(workload)} is not one of {', '.join(known)}.{near}")
    own = known[workload]
    defaults = {name: value for name, value in document.items() if name in own or name not in elsewhere}
    given = {name: value for name, value in {**defaults, **table}.items() if name != "workload"}
    for name in given:
        if text := REMOVED.get(name):
            raise UsageError(text)
        if name not in own:
            raise UsageError(f"{shown(name)} is not an option of {workload}.{suggestion(name, own)}")
    return cases_of(given, workload)
