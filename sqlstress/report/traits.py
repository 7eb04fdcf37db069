"""Traits: what a case is, setting by setting, in the words of the options. By them cases are told apart."""

from __future__ import annotations

import shlex
from typing import Any, cast

from sqlstress.options.option import options_of
from sqlstress.report.case import Case
from sqlstress.statistics.units import format_duration
from sqlstress.target import bucket

UNSET = "default"
"""A setting that is left to the library."""


def traits(case: Case) -> dict[str, str]:
    """Return driver, settings, and the options of what only cases of its experiment have, by option."""
    told = {"driver": case.driver, **_of(case.settings), **_of(case.spec)}
    return {**told, "busy-timeout": format_duration(case.settings.busy_timeout_ms / 1000)}


def layout(case: Case) -> str:
    """Return over how many files, or tables, a case spreads its data."""
    return f"{case.buckets} {bucket(case.driver)}{'s' * (case.buckets != 1)}"


def _of(part: Any) -> dict[str, str]:
    return {one.name: words(getattr(part, field)) for field, one in options_of(cast(Any, type(part))).items()}


def words(value: Any) -> str:
    """Return a value as it is given: on, 0.5, full, foreign_keys=on."""
    if value is None or value == ():
        return UNSET
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        if isinstance(value[0], str):
            return shlex.join(value)
        return ", ".join("=".join(map(str, one)) for one in value)
    return str(value)
