"""A name for each case that stays the same from one report to the next: trackers tell cases by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from sqlstress.display.clean import clean
from sqlstress.experiment import Unknown, face_of
from sqlstress.report import Environment, Report
from sqlstress.report.case import Case

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
    spec, experiment = case.spec, face_of(case)
    parts = [one.name for one in fields(spec) if is_dataclass(getattr(spec, one.name))]
    own = _unknown(spec) if isinstance(spec, Unknown) else [*_changed(spec, {*experiment.in_label, *parts})]
    settings = [*_changed(case.settings, ())]
    # Trackers know a case by its name: the order is what it was when each of them came.
    yield from (*own, *settings) if experiment.sweeps else (*settings, *own)
    for part in parts:
        yield from _changed(getattr(spec, part), experiment.in_label)


def _unknown(spec: Unknown) -> list[str]:
    return [f"{name}={value}" for name, value in spec.said().items()]


def _changed(part: Any, said: Collection[str]) -> Iterator[str]:
    """Yield the fields of a part of a case that are not as they are by default."""
    for field in fields(part):
        value = getattr(part, field.name)
        if field.default is MISSING or value == field.default or field.name in said:
            continue
        if field.name == "pragmas":
            yield from (f"{name}={setting}" for name, setting in value)
        else:
            yield f"{field.name.replace('_', '-')}={_written(value)}"


def _written(value: object) -> str:
    switches = {True: "on", False: "off", None: "unset"}
    return switches[value] if value is None or isinstance(value, bool) else str(value)
