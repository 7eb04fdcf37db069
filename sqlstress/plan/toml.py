"""A plan in a TOML file: options at the top are defaults, each [[case]] has its own."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sqlstress.case import Case
from sqlstress.errors import UsageError
from sqlstress.options import OPTIONS, by_name
from sqlstress.parsing import shown
from sqlstress.plan import cases_of, check_count, seeded, suggestion


def plan_cases(path: Path) -> tuple[Case, ...]:
    """Return the cases of a plan. Raises UsageError that names the file and the case."""
    document = _read(path)
    tables = document.pop("case", None)
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise UsageError(f"{path}: a plan needs at least one [[case]].")
    document = seeded(document)
    planned: list[Case] = []
    for number, table in enumerate(tables, 1):
        try:
            planned += _cases(document, table, tables)
        except UsageError as error:
            raise UsageError(f"{path}, case {number}: {error}") from error
        check_count(len(planned))
    return tuple(planned)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the plan {path}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        # tomllib lets more than its own TOMLDecodeError through: text that is not UTF-8, huge numbers.
        raise UsageError(f"{path} is not a TOML file: {error!s:.160}.") from error


def _cases(
    document: Mapping[str, Any], table: Mapping[str, Any], tables: Iterable[Mapping[str, Any]]
) -> list[Case]:
    """Return the cases of one [[case]]; a default that belongs to another workload is not for it."""
    workload = _workload({**document, **table})
    own = by_name(workload)
    elsewhere = {name for each in tables for name in by_name(_workload({**document, **each}))}
    defaults = {name: value for name, value in document.items() if name in own or name not in elsewhere}
    given = {name: value for name, value in {**defaults, **table}.items() if name != "workload"}
    for name in given:
        if name not in own:
            raise UsageError(f"{shown(name)} is not an option of {workload}.{suggestion(name, own)}")
    return cases_of(workload, given)


def _workload(table: Mapping[str, Any]) -> str:
    workload = table.get("workload")
    if not isinstance(workload, str) or workload not in OPTIONS:
        raise UsageError(f"workload = {workload!r:.40} is missing or not one of {', '.join(OPTIONS)}.")
    return workload
