"""The arms of an A/B test: in what they differ, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlstress.analysis.builds import build_of, own_options, versions
from sqlstress.report import AbTest, Arm, Report, SqliteBuild, jsonable
from sqlstress.report.case import Case


def arm_differences(report: Report, test: AbTest, case: Case, other: Case) -> Iterator[str]:
    """Yield in what two arms differ, each with one of its cases: "synchronous: full and normal".

    What only follows from the rest is left out, but for the library: two drivers have one each.
    """
    own, others = _flat(jsonable.to_plain(case)), _flat(jsonable.to_plain(other))
    a, b = test.arms
    builds = _build(report, a, case), _build(report, b, other)
    told = {name: (own.get(name), others.get(name)) for name in dict.fromkeys((*own, *others))} | {
        "Python": (a.version, b.version),
        "sqlstress": (a.tool_version, b.tool_version),
        "SQLite": tuple(versions(builds)),
        "SQLite's options": tuple(own_options(builds)) if all(builds) else (None, None),
    }
    for name, (of, against) in told.items():
        # What a file says is told by its name.
        if not name.endswith("digest") and _value(of) != _value(against):
            yield f"{name}: {_value(of)} and {_value(against)}"


def _build(report: Report, arm: Arm, case: Case) -> SqliteBuild | None:
    """Return the library that an arm was measured with."""
    return build_of(case.driver, arm.builds if arm.python else report.environment.builds)


def _flat(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a case, those of its parts too, without the parts' names."""
    found: dict[str, Any] = {}
    for name, value in plain.items():
        found |= _flat(value) if isinstance(value, dict) else {name: value}
    return found


def _value(value: Any) -> str:
    if value in (None, "", []):
        return "not set"
    return "; ".join(map(_item, value)) if isinstance(value, list) else str(value)


def _item(value: Any) -> str:
    """Return a part of a list; of one that has a name and a weight these."""
    if not isinstance(value, dict) or "name" not in value:
        return str(value)
    weight = value.get("weight", 1)
    return str(value["name"]) if weight == 1 else f"{value['name']}@{weight}"
