"""Plan: the cases to measure, made from command-line options or a TOML file."""

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
from sqlstress.options.parsing import MAX_SUGGESTIONS, abbreviate, sentence, suggestion
from sqlstress.registry import DEFAULT
from sqlstress.report.case import Arrivals, Case, Settings
from sqlstress.request import Request
from sqlstress.system.files import read_text

T = TypeVar("T")


def built(cls: type[T], values: Mapping[str, Any], **known: Any) -> T:
    """Return an instance of a dataclass of options, such as Case, with these values.

    `values` has values by name of the option, such as "busy-timeout", and `known` by name of the field. Other
    fields have their defaults, or None for the experiment to replace if there is no default.
    """
    known_options = options_of(cast(Any, cls)).items()
    by_field = {name: values[option.name] for name, option in known_options if option.name in values}
    for field in fields(cast(Any, cls)):
        if field.name not in by_field and field.name not in known and is_dataclass(field.default):
            by_field[field.name] = built(type(cast(Any, field.default)), values)
    unset = {
        field.name: None
        for field in fields(cast(Any, cls))
        if field.name not in by_field and not has_default(field)
    }
    return cls(**{**unset, **by_field, **known})


MAX_CASES = 1000


class Plan(NamedTuple):
    """Cases to measure, and the experiment that they belong to."""

    cases: tuple[Case, ...]
    experiment: Experiment | None = None
    """Experiment of all cases; None for a plan file, which can have several experiments."""
    selection: Any = None
    """Options that select cases and are not stored in them; None for a plan file."""


def options_of_command(command: str) -> tuple[Option, ...]:
    """Return the options of the experiment that a command measures. Raises KeyError for other commands."""
    return commands()[command].options


def parse_option(option: Option, value: Any) -> Any:
    """Return an option's parsed value; None stays None. Raises UsageError, which names the option."""
    try:
        return None if value is None else option.parse(value)
    except ValueError as error:
        name = option.name.upper() if option.argument else f"--{option.name}"
        raise UsageError(f"{name}: {sentence(error)}") from error


def parse_options(options: Iterable[Option], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parsed values or defaults of options, by name. Raises UsageError for an invalid value."""
    return {option.name: parse_option(option, given.get(option.name, option.default)) for option in options}


def options_of_load(
    command: str, otherwise: Mapping[str, Mapping[str, Any]], left_out: Collection[str]
) -> tuple[Option, ...]:
    """Return the options that a study, such as `limit`, takes from an experiment: all but `left_out`.

    `otherwise` has changed attributes of options by name of the option: {"warmup": {"default": "500ms"}}.
    """
    return tuple(
        replace(option, **otherwise.get(option.name, {}))
        for option in get_experiment(command).options
        if option.name not in left_out
    )


def fixed_options(command: str) -> dict[str, Any]:
    """Return the options that a study of one case, such as `limit`, sets itself, by name."""
    values = get_experiment(command).single_case_values
    return {name: value for name, value in values.items() if value is not None}


def plan_of(given: Mapping[str, Any], command: str = DEFAULT) -> Plan:
    """Return the plan that a command's options request.

    `given` has unparsed values by name; a missing option or None means the default. Raises UsageError for
    invalid options and for more than MAX_CASES cases. To save memory, no further cases are made.
    """
    given = {name: value for name, value in seeded(given).items() if value is not None}
    experiment = commands()[command]
    options = {option.name: option for option in experiment.options}
    for name in given:
        if name not in options:
            raise UsageError(_stray(experiment, command, name))
    values = {name: option.value for name, option in options.items()}
    values |= {name: parse_option(options[name], value) for name, value in given.items()}
    lists = {name: values[name] or (None,) for name, option in options.items() if option.varies}
    first_values = {**values, **{name: listed[0] for name, listed in lists.items()}}
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
    cases = tuple(islice(experiment.cases(request), MAX_CASES + 1))
    check_count(len(cases))
    return Plan(cases, experiment, selection)


def _stray(experiment: Experiment, command: str, name: str) -> str:
    if text := REMOVED.get(name):
        return text
    if reason := experiment.unsupported.get(name):
        return f"--{name}: {reason}."
    names = [option.name for option in experiment.options]
    return f"--{name} is not an option of {command}.{suggestion(name, names)}"


def cases_of(given: Mapping[str, Any], command: str = DEFAULT) -> tuple[Case, ...]:
    """Return the cases that a command's options request. Raises UsageError for invalid options."""
    return plan_of(given, command).cases


def seeded(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the options, with a random seed if none is set."""
    seed = given.get("seed")
    return {**given, "seed": secrets.randbelow(1 << 32) if seed is None else seed}


def check_count(cases: int) -> None:
    """Raise UsageError for more than MAX_CASES cases."""
    if cases > MAX_CASES:
        raise UsageError(f"the plan has more than {MAX_CASES:,} cases. Split it.")


# Plans in TOML files: options at the top are defaults, and each [[case]] has further options.


MAX_BYTES = 128 << 10
"""Maximum size of a plan file, in bytes."""
MAX_LINE = 500
"""Maximum length of a line in a plan: long dotted keys take tomllib much time and memory."""


def from_toml(path: Path) -> tuple[Case, ...]:
    """Return the cases of a TOML file. Raises UsageError, which names the file and the case."""
    document = _read_toml(path)
    tables = document.pop("case", None)
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        names = [name for name, value in document.items() if isinstance(value, list | dict)]
        near = next((name for name in names if suggestion(name, ["case"])), None)
        misspelt = f" It has [[{near}]]: rename it." if near else ""
        raise UsageError(f"{path}: a plan needs at least one [[case]].{misspelt}")
    document = seeded(document)
    workloads = [experiment.name for experiment in all_experiments() if experiment.allowed_in_plans]
    options_by_workload = {name: {option.name for option in options_of_command(name)} for name in workloads}
    planned: list[Case] = []
    named = (table.get("workload", document.get("workload")) for table in tables)
    # A default at the top of the file is allowed if at least one workload of the plan has the option.
    plan_options = {
        name
        for workload in named
        if isinstance(workload, str)
        for name in options_by_workload.get(workload, ())
    }
    for number, table in enumerate(tables, 1):
        try:
            planned += _cases(document, table, options_by_workload, plan_options)
            check_count(len(planned))
        except NoWork as error:
            raise UsageError(f"{path}, case {number}: {error.assigned}") from error
        except UsageError as error:
            raise UsageError(f"{path}, case {number}: {error}") from error
    return tuple(planned)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        text = read_text(path, MAX_BYTES)
        long = next((i for i, line in enumerate(text.split("\n"), 1) if len(line) > MAX_LINE), None)
        if long:
            raise ValueError(f"line {long} has more than {MAX_LINE} characters")
        return tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"cannot read the plan {path}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        # tomllib also raises errors other than TOMLDecodeError, for example for huge numbers.
        raise UsageError(f"{path} is not a TOML file: {error!s:.160}.") from error


def _cases(
    document: Mapping[str, Any],
    table: Mapping[str, Any],
    options_by_workload: Mapping[str, set[str]],
    plan_options: set[str],
) -> tuple[Case, ...]:
    """Return the cases of one [[case]] in a plan. Raises UsageError for an invalid option.

    `document` has the options at the top of the file, `table` those of the [[case]]. `options_by_workload`
    has the option names of each workload, `plan_options` those of all workloads in the plan.
    """
    workload = table.get("workload", document.get("workload"))
    if not isinstance(workload, str) or workload not in options_by_workload:
        if workload is None:
            raise UsageError(f"workload is missing. Give one of {', '.join(options_by_workload)}.")
        near = suggestion(workload, options_by_workload, MAX_SUGGESTIONS)
        raise UsageError(
            f"workload = {abbreviate(workload)} is not one of {', '.join(options_by_workload)}.{near}"
        )
    option_names = options_by_workload[workload]
    defaults = {
        name: value for name, value in document.items() if name in option_names or name not in plan_options
    }
    values = {name: value for name, value in {**defaults, **table}.items() if name != "workload"}
    for name in values:
        if text := REMOVED.get(name):
            raise UsageError(text)
        if name not in option_names:
            raise UsageError(
                f"{abbreviate(name)} is not an option of {workload}.{suggestion(name, option_names)}"
            )
    return cases_of(values, workload)
