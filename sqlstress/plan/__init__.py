"""Plan: flags or a TOML file become a list of Cases."""

from __future__ import annotations

import difflib
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, cast

from sqlstress.errors import UsageError
from sqlstress.options import by_name
from sqlstress.report.case import Case

MOST_CASES = 1000

Planner = Callable[[dict[str, Any], Mapping[str, Any]], Iterator[Case]]

PLANNERS = {
    "kv": "sqlstress.experiments.kv.cases:cases",
    "methods": "sqlstress.experiments.methods.cases:cases",
    "keys": "sqlstress.experiments.keys.cases:cases",
    "cycles": "sqlstress.experiments.cycles.cases:cases",
    "crash": "sqlstress.experiments.crash.cases:cases",
}
"""Workload → what its options mean, as an import string."""


def parse_option(workload: str, name: str, value: Any) -> Any:
    """Parse one option's value; raises UsageError that names the option."""
    try:
        return by_name(workload)[name].parse(value)
    except ValueError as error:
        raise UsageError(f"--{name}: {error}.") from error


def cases_of(workload: str, given: Mapping[str, Any]) -> list[Case]:
    """Return the cases of one set of options.

    `given` holds unparsed values by option name; what is missing or None has its default.
    Raises UsageError, also for more cases than anybody waits for, before they take memory.
    """
    asked = {name: parse_option(workload, name, value) for name, value in given.items() if value is not None}
    values = {**_defaults(workload), **asked}
    if values["seed"] is None:
        raise UsageError("a seed is missing")
    module, function = PLANNERS[workload].split(":")
    planner = cast(Planner, getattr(import_module(module), function))
    cases = list(islice(planner(values, asked), MOST_CASES + 1))
    check_count(len(cases))
    return cases


def _defaults(workload: str) -> dict[str, Any]:
    return {
        option.name: None if option.default is None else option.parse(option.default)
        for option in by_name(workload).values()
    }


def from_options(given: Mapping[str, Any], workload: str = "kv") -> tuple[Case, ...]:
    """Return the cases that the command line asks for."""
    return tuple(cases_of(workload, seeded(given)))


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
