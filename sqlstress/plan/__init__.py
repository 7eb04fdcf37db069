"""Plan: flags or a TOML file become a list of Cases."""

from __future__ import annotations

import difflib
import secrets
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from sqlstress.errors import UsageError
from sqlstress.experiment import DEFAULT, Experiment, of_command
from sqlstress.options.option import Option
from sqlstress.plan.ask import Ask, ask
from sqlstress.report.case import Case

MOST_CASES = 1000


class Planned(NamedTuple):
    """What is to be measured."""

    cases: tuple[Case, ...]
    experiment: Experiment | None = None
    """The one whose options asked for it; None: a plan, whose cases are of any."""
    extra: Any = None
    """Its options that stand in no case."""


def options_of_command(command: str) -> tuple[Option, ...]:
    """Return the options of a command: those of every experiment that it can measure, each once."""
    found: dict[str, Option] = {}
    for experiment in of_command(command):
        for option in experiment.options:
            found.setdefault(option.name, option)
    return tuple(found.values())


def parsed(option: Option, value: Any) -> Any:
    """Parse one option's value; raises UsageError that names the option."""
    try:
        return None if value is None else option.parse(value)
    except ValueError as error:
        raise UsageError(f"--{option.name}: {error}.") from error


def asked_for(given: Mapping[str, Any], command: str = DEFAULT) -> tuple[Experiment, Ask[Any, Any]]:
    """Return which experiment options ask for, and what of it.

    `given` holds unparsed values by option name; what is missing or None has its default. Raises UsageError.
    """
    given = {name: value for name, value in seeded(given).items() if value is not None}
    experiment = _chosen(command, given)
    known = {option.name: option for option in experiment.options}
    for name in given:
        if name not in known:
            raise UsageError(_stray(experiment, command, name))
    values = {name: option.value for name, option in known.items()}
    values |= {name: parsed(known[name], value) for name, value in given.items()}
    return experiment, ask(experiment, values, frozenset(given))


def _chosen(command: str, given: Mapping[str, Any]) -> Experiment:
    first, *others = of_command(command)
    return next((one for one in others if any(given.get(name) for name in one.chosen_by)), first)


def _stray(experiment: Experiment, command: str, name: str) -> str:
    """Say what an option is for that the experiment has not got."""
    if why := experiment.without.get(name):
        return f"--{name}: {why}."
    if experiment.chosen_by:
        return f"--{name} means nothing for {experiment.noun}: leave it out."
    for other in of_command(command):
        if any(option.name == name for option in other.options):
            ways = " or ".join(f"--{way}" for way in other.chosen_by)
            return f"--{name} is for {other.noun}: add {ways}."
    known = [option.name for option in options_of_command(command)]
    return f"{name} is not an option of {command}.{suggestion(name, known)}"


def planned(given: Mapping[str, Any], command: str = DEFAULT) -> Planned:
    """Return what one set of options asks for.

    Raises UsageError, also for more cases than anybody waits for, before they take memory.
    """
    experiment, asked = asked_for(given, command)
    cases = tuple(islice(experiment.cases(asked), MOST_CASES + 1))
    check_count(len(cases))
    return Planned(cases, experiment, asked.extra)


def cases_of(given: Mapping[str, Any], command: str = DEFAULT) -> tuple[Case, ...]:
    """Return the cases of one set of options. Raises UsageError."""
    return planned(given, command).cases


def from_toml(path: Path) -> tuple[Case, ...]:
    """Return the cases of a plan: options at the top are defaults, each [[case]] has its own."""
    from sqlstress.plan.toml import plan_cases

    return plan_cases(path)


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return " Did you mean …?" for a mistyped word, or nothing."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" Did you mean {near[0]}?" if near else ""


def seeded(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with a seed: a random one, unless one is given."""
    seed = given.get("seed")
    return {**given, "seed": secrets.randbelow(1 << 32) if seed is None else seed}


def check_count(cases: int) -> None:
    """Raise UsageError for more cases than anybody waits for."""
    if cases > MOST_CASES:
        raise UsageError(f"these are more than {MOST_CASES:,} cases: split the plan.")
