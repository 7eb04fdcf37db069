"""JSON Schema of a saved report, generated from the dataclasses of the report.

The descriptions are docstrings, read from the source. An installed program may lack its source, so the schema
is a file of the package, which `python -m sqlstress.report.json_schema` writes.
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from sqlstress.options.option import has_default, options_of
from sqlstress.options.parsing import schema_keywords
from sqlstress.registry import DEFAULT, ReportFormat, all_formats, result_formats
from sqlstress.report.case import JOURNAL_MODES, KEEP_JOURNAL_MODE, Case
from sqlstress.report.document import FORMAT_VERSION, Report, write_atomically
from sqlstress.report.results import CHECK_STATUSES
from sqlstress.report.study_results import ARMS, ORDERS
from sqlstress.statistics.sequential import METRICS, VERDICTS

FILE_NAME = "report.schema.json"

_MAJOR = FORMAT_VERSION.split(".")[0]
_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}

_CONSTRAINTS: dict[str, dict[str, Any]] = {
    "Case.concurrency": {"minimum": 0},
    "Case.buckets": {"minimum": 1},
    "Settings.journal_mode": {"enum": [*JOURNAL_MODES, KEEP_JOURNAL_MODE]},
    "Check.status": {"enum": [*CHECK_STATUSES]},
    "AbTest.metric": {"enum": [*METRICS]},
    "AbTest.first": {"enum": [*ARMS]},
    "AbTest.order": {"enum": [*ORDERS]},
    "AbTest.verdict": {"enum": [*VERDICTS]},
    "Arm.name": {"enum": [*ARMS]},
    "Look.verdict": {"enum": [*VERDICTS]},
    "Report.format_version": {"pattern": rf"^{_MAJOR}\.[0-9]{{1,4}}$"},
}
"""Schema keywords, by "Class.field", that do not follow from type hints or options."""
_OPEN = ("Case.driver",)
"""Fields, as "Class.field", with more possible values in a report than their option allows.

A report may have a driver that only one experiment supports, or UNKNOWN_DRIVER.
"""


_FINDINGS: dict[str, Any] = {
    "type": "array",
    "description": "Conclusions, computed when the report is written and ignored when it is read.",
    "items": {
        "type": "object",
        "required": ["code", "facts", "text"],
        "properties": {
            "code": {"type": "string", "description": "Stable name, such as starvation or highest."},
            "facts": {
                "type": "object",
                "description": "Numbers, labels and other findings; times end in _ns, shares are 0 to 1.",
            },
            "text": {"type": "string", "description": "Sentence in English with these facts."},
        },
    },
}
"""Schema of the findings, which have no dataclass: they are computed when a report is written."""


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a report. Unknown keys are allowed."""
    definitions: dict[str, Any] = {}
    report = _object(Report, definitions, ("results",))
    report["required"].append("format_version")  # The field has a default, but `document.read` requires it.
    report["properties"]["findings"] = _FINDINGS
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:sqlstress:report:{_MAJOR}",
        "title": f"sqlstress report, format {FORMAT_VERSION}",
        **report,
        "$defs": dict(sorted(definitions.items())),
    }


def schema_text() -> str:
    """Return the text of the schema file in the package."""
    return resources.files("sqlstress.report").joinpath(FILE_NAME).read_text(encoding="utf-8")


def generated_text() -> str:
    """Return the text of the schema, generated from the dataclasses."""
    return json.dumps(report_schema(), indent=1) + "\n"


def _object(cls: type, definitions: dict[str, Any], excluded: Sequence[str] = ()) -> dict[str, Any]:
    """Return the schema of a dataclass, and add the schemas of nested dataclasses to `definitions`."""
    hints = get_type_hints(cls)
    names = [field.name for field in fields(cls) if field.name not in excluded]
    properties = {name: _property(cls, name, hints[name], definitions) for name in names}
    if cls is Report:
        properties |= _results(definitions)
    rules: dict[str, Any] = {}
    if cls is Case:  # One rule for each experiment whose cases have fields of their own.
        rules["allOf"] = [
            _rule(experiment, definitions) for experiment in all_formats() if fields(experiment.spec)
        ]
    return {
        "description": inspect.cleandoc(cls.__doc__ or ""),
        "type": "object",
        "properties": properties,
        "required": _required(cls),
        **rules,
        "additionalProperties": True,
    }


def _required(cls: type) -> list[str]:
    return [field.name for field in fields(cls) if not has_default(field)]


def _property(cls: type, name: str, hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    place = f"{cls.__name__}.{name}"
    option = options_of(cls).get(name)
    text = option.described if option else field_docstrings(cls).get(name)
    if text is None:
        raise TypeError(f"{place} has no docstring: say what it is, with its unit, in a literal after it")
    schema = {"description": text} | _type(hint, definitions)
    if option and place not in _OPEN:
        # A field allows the values that its option's parser allows, and null if the field is optional.
        bounds = schema_keywords(option.parse)
        if "enum" in bounds and NoneType in get_args(hint):
            bounds = {"enum": [*bounds["enum"], None]}
        schema |= bounds
    return schema | _CONSTRAINTS.get(place, {})


def _rule(experiment: ReportFormat, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return an if-then rule of JSON Schema: a case of this experiment has the fields of its spec."""
    condition: dict[str, Any] = {"properties": {"workload": {"const": experiment.name}}}
    if experiment.name != DEFAULT:
        condition["required"] = ["workload"]
    spec, key = experiment.spec, experiment.key
    hints, required = get_type_hints(spec), _required(spec)
    top_level = experiment.top_level_fields if key else tuple(field.name for field in fields(spec))
    properties = {name: _property(spec, name, hints[name], definitions) for name in top_level}
    if key is None:
        return {"if": condition, "then": {"properties": properties, "required": required}}
    reference = _reference(spec, definitions, top_level)
    kinds = reference if required else {"anyOf": [reference, {"type": "null"}]}
    nested = {"description": inspect.cleandoc(spec.__doc__ or ""), **kinds}
    then = {"properties": {key: nested, **properties}, "required": [key] * bool(required)}
    return {"if": condition, "then": then}


def _results(definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schemas of results without runs, such as that of a crash test, by key of the report."""
    properties: dict[str, Any] = {}
    for study in result_formats().values():
        place, key = study.result_key
        text = f"Result of {study.label}; None for anything else."
        schema = properties.setdefault(
            place, {"description": text, "type": ["object", "null"], "properties": {}}
        )
        reference = _reference(study.result, definitions)
        schema["properties"][key] = {"anyOf": [reference, {"type": "null"}]}
    return properties


def _type(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if hint in _SCALARS:
        return {"type": _SCALARS[hint]}
    if is_dataclass(hint):
        return _reference(hint, definitions)
    arguments, origin = get_args(hint), get_origin(hint)
    if origin is dict:
        return {"type": "object", "additionalProperties": _type(arguments[1], definitions)}
    kinds = [_type(argument, definitions) for argument in arguments if argument is not Ellipsis]
    if NoneType in arguments:
        if all(kind.keys() == {"type"} for kind in kinds):
            return {"type": [kind["type"] for kind in kinds]}
        return {"anyOf": kinds}
    if origin is tuple and arguments[-1] is Ellipsis:
        return {"type": "array", "items": kinds[0]}
    if origin is tuple:
        count = len(kinds)
        return {"type": "array", "prefixItems": kinds, "items": False, "minItems": count, "maxItems": count}
    raise TypeError(f"the schema does not know the type {hint!r}")


def _reference(cls: Any, definitions: dict[str, Any], excluded: Sequence[str] = ()) -> dict[str, Any]:
    """Add the schema of a dataclass to `definitions`, and return a reference to it.

    Raise TypeError if a different class has the same name.
    """
    schema = _object(cls, definitions, ("spec",) if cls is Case else excluded)
    if definitions.setdefault(cls.__name__, schema) != schema:
        raise TypeError(f"two types of a report are called {cls.__name__}")
    return {"$ref": f"#/$defs/{cls.__name__}"}


@cache
def field_docstrings(cls: type) -> dict[str, str]:
    """Return the docstrings of a class's fields (the string literals after the fields), by field name."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(definition, ast.ClassDef)
    docstrings = {}
    for node, following in zip(definition.body, definition.body[1:], strict=False):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        match following:
            case ast.Expr(value=ast.Constant(value=str(text))):
                docstrings[node.target.id] = inspect.cleandoc(text)
    return docstrings


if __name__ == "__main__":
    write_atomically(Path(__file__).with_name(FILE_NAME), generated_text())
