"""A name for each case that stays the same from one report to the next: trackers tell cases by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any

from sqlstress.display.clean import clean
from sqlstress.report import Environment, Report
from sqlstress.report.case import Case

_PARTS = ("load", "settings", "checkpointing", "picks", "cycling")
_IN_LABEL = frozenset({"made_by", "transaction"})
_LONGEST = 200


def case_names(report: Report) -> tuple[str, ...]:
    """Return a name for each run: what is measured, then whatever of it is not sqlstress's own default.

    What says how surely it is measured (window, trials, seed, proof) is no part of it.
    """
    seen: Counter[str] = Counter()
    names = []
    for run in report.runs:
        arm = f"{run.arm}, " if run.arm else ""
        name = clean(", ".join((f"{arm}{run.case.workload}: {run.case.label}", *_particulars(run.case))))[
            :_LONGEST
        ]
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(names)


def surroundings(environment: Environment) -> str:
    """Return system and architecture: "Linux x86_64"."""
    return clean(f"{environment.host.system} {environment.host.machine}") or "unknown system"


def _particulars(case: Case) -> Iterator[str]:
    if case.driver != "sqlite3":
        yield f"driver={case.driver}"
    if case.ops is not None:
        yield f"ops={case.ops}"
    for part in _PARTS:
        yield from _changed(getattr(case, part))


def _changed(part: Any) -> Iterator[str]:
    """Yield the fields of a part of a case that are not as they are by default."""
    for field in fields(part) if part else ():
        value = getattr(part, field.name)
        if field.default is MISSING or value == field.default or field.name in _IN_LABEL:
            continue
        if field.name == "pragmas":
            yield from (f"{name}={setting}" for name, setting in value)
        else:
            yield f"{field.name.replace('_', '-')}={_written(value)}"


def _written(value: object) -> str:
    switches = {True: "on", False: "off", None: "unset"}
    return switches[value] if value is None or isinstance(value, bool) else str(value)
