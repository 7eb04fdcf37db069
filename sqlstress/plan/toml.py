"""A plan in a TOML file: options at the top are defaults, each [[case]] has its own."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlstress.errors import UsageError
from sqlstress.experiment import faces
from sqlstress.options.parsing import shown
from sqlstress.plan import cases_of, check_count, options_of_command, seeded, suggestion
from sqlstress.report.case import Case
from sqlstress.system.files import read_text

LARGEST = 128 << 10
"""Bytes of a plan: a thousand cases of a hundred bytes."""
LONGEST_LINE = 500
"""Characters of a line: tomllib takes time and memory that grow with the square of a dotted key's length."""


def plan_cases(path: Path) -> tuple[Case, ...]:
    """Return the cases of a plan. Raises UsageError that names the file and the case."""
    document = _read(path)
    tables = document.pop("case", None)
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise UsageError(f"{path}: a plan needs at least one [[case]].{_misspelt(document)}")
    document = seeded(document)
    planned: list[Case] = []
    elsewhere = {name for workload in _workloads(document, tables) for name in _names(workload)}
    for number, table in enumerate(tables, 1):
        try:
            planned += _cases(document, table, elsewhere)
            check_count(len(planned))
        except UsageError as error:
            raise UsageError(f"{path}, case {number}: {error}") from error
    return tuple(planned)


def _misspelt(document: Mapping[str, Any]) -> str:
    """Return " It has [[cas]]." where tables have nearly the right name, or nothing."""
    names = [name for name, value in document.items() if isinstance(value, list | dict)]
    near = next((name for name in names if suggestion(name, ["case"])), None)
    return f" It has [[{near}]]." if near else ""


def _read(path: Path) -> dict[str, Any]:
    try:
        text = read_text(path, LARGEST)
        _check_lines(text)
        return tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"cannot read the plan {path}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        # tomllib lets more than its own TOMLDecodeError through, such as for huge numbers.
        raise UsageError(f"{path} is not a TOML file: {error!s:.160}.") from error


def _check_lines(text: str) -> None:
    long = next((i for i, line in enumerate(text.split("\n"), 1) if len(line) > LONGEST_LINE), None)
    if long:
        raise ValueError(f"line {long} has more than {LONGEST_LINE} characters")


def _workloads(document: Mapping[str, Any], tables: list[dict[str, Any]]) -> set[str]:
    """Return which workloads a plan names; what is none of ours is told of where its case is read."""
    named = (table.get("workload", document.get("workload")) for table in tables)
    return {name for name in named if isinstance(name, str) and name in _known()}


def _known() -> list[str]:
    """Return the names that a plan can have."""
    return [one.name for one in faces() if one.in_plans]


def _names(workload: str) -> set[str]:
    """Return the names of the options of a workload."""
    return {option.name for option in options_of_command(workload)}


def _cases(document: Mapping[str, Any], table: Mapping[str, Any], elsewhere: set[str]) -> tuple[Case, ...]:
    """Return the cases of one [[case]]; `elsewhere` are the options that any workload of the plan has.

    A default that belongs to another workload is not for it.
    """
    workload = _workload({**document, **table})
    own = _names(workload)
    defaults = {name: value for name, value in document.items() if name in own or name not in elsewhere}
    given = {name: value for name, value in {**defaults, **table}.items() if name != "workload"}
    for name in given:
        if name not in own:
            raise UsageError(f"{shown(name)} is not an option of {workload}.{suggestion(name, own)}")
    return cases_of(given, workload)


def _workload(table: Mapping[str, Any]) -> str:
    workload = table.get("workload")
    if not isinstance(workload, str) or workload not in _known():
        raise UsageError(f"workload = {shown(workload)} is missing or not one of {', '.join(_known())}.")
    return workload
