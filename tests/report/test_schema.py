"""Tests of the published JSON Schema."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from sqlstress.errors import UsageError
from sqlstress.experiments.classics.cycles import Cycling
from sqlstress.experiments.kv.spec import Load
from sqlstress.report import Report, from_json, json_schema, to_json
from tests.drawing import examples
from tests.example_report import example_report, failed_report
from tests.strategies import reports

SCHEMA = json_schema.report_schema()
VALIDATOR = Draft202012Validator(SCHEMA)
COMMAND = "python -m sqlstress.report.json_schema"


def plain_example() -> Any:
    return json.loads(to_json(example_report()))


def described(node: Any) -> list[dict[str, Any]]:
    if not isinstance(node, dict):
        return []
    own = list(node.get("properties", {}).values())
    children = [*node.get("$defs", {}).values(), *(rule["then"] for rule in node.get("allOf", []))]
    return own + [found for child in children for found in described(child)]


def test_the_shipped_schema_is_the_one_that_the_types_say() -> None:
    assert json_schema.schema_text() == json_schema.generated_text(), f"stale: {COMMAND} rewrites it"


def test_the_module_run_as_a_command_rewrites_the_shipped_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    copy = tmp_path / "json_schema.py"
    code = Path(json_schema.__file__).read_text(encoding="utf-8")
    copy.write_text(code, encoding="utf-8")
    exec(compile(code, str(copy), "exec"), {"__name__": "__main__", "__file__": str(copy)})
    assert (tmp_path / json_schema.FILE_NAME).read_text(encoding="utf-8") == json_schema.schema_text()


def test_the_schema_is_valid_describes_every_field_and_constrains_none_that_is_not_there() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"].endswith("/2020-12/schema")
    assert SCHEMA["$id"].startswith("urn:")
    fields = described(SCHEMA)
    assert len(fields) > 100
    assert all(field["description"].strip().endswith((".", "?")) for field in fields)
    known = {f"{name}.{field}" for name, node in SCHEMA["$defs"].items() for field in node["properties"]}
    known |= {f"Report.{field}" for field in SCHEMA["properties"]}
    assert json_schema._CONSTRAINTS.keys() <= known


def test_the_example_reports_are_valid() -> None:
    for report in (example_report(), failed_report()):
        VALIDATOR.validate(json.loads(to_json(report)))


@settings(max_examples=examples(0.4))
@given(reports)
def test_every_report_that_can_be_written_is_valid(report: Report) -> None:
    VALIDATOR.validate(json.loads(to_json(report)))


def test_unknown_keys_a_later_minor_version_and_what_is_left_to_the_library_are_valid() -> None:
    plain = plain_example()
    plain["unknown"] = plain["runs"][0]["unknown"] = 1
    VALIDATOR.validate(plain)
    assert VALIDATOR.is_valid(plain_example() | {"format_version": "1.7"})
    assert not VALIDATOR.is_valid(plain_example() | {"format_version": "2.0"})
    plain = plain_example()
    plain["runs"][0]["case"]["settings"]["synchronous"] = None
    VALIDATOR.validate(plain)


def assert_refused(plain: Any) -> None:
    """Assert that schema and reader alike refuse a report."""
    assert not VALIDATOR.is_valid(plain)
    with pytest.raises(UsageError):
        from_json(json.dumps(plain))


def test_a_report_without_a_required_key_is_refused_by_schema_and_reader_alike() -> None:
    for key in ("created", "command", "environment", "format_version"):
        plain = plain_example()
        del plain[key]
        assert_refused(plain)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tps", "fast"),
        ("busy", 1.5),
        ("workers", {}),
        ("effective", {"page_size": 4096}),
        ("latency", {"get": {"count": 1}}),
    ],
)
def test_a_wrong_type_is_refused_by_schema_and_reader_alike(name: str, value: Any) -> None:
    plain = plain_example()
    plain["runs"][0]["trials"][0][name] = value
    assert_refused(plain)


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("settings", "journal_mode", "journal"),
        ("settings", "synchronous", "FULL"),
        ("load", "distribution", "normal"),
        ("load", "read_ratio", 1.5),
    ],
)
def test_a_value_outside_an_enumeration_is_not_valid(part: str, name: str, value: Any) -> None:
    plain = plain_example()
    plain["runs"][0]["case"][part][name] = value
    assert not VALIDATOR.is_valid(plain)


@pytest.mark.parametrize(
    ("workload", "keys"),
    [
        ("kv", {"load": {"value_size": "eight"}}),
        ("methods", {"load": {}}),
        ("keys", {"picks": {"schema": "no-key"}}),
        ("cycles", {"cycling": {"cycles": "all"}}),
        ("crash", {"load": {"batch": 1.5}}),
    ],
)
def test_what_a_case_has_is_that_of_its_experiment_for_schema_and_reader_alike(
    workload: str, keys: dict[str, Any]
) -> None:
    plain = plain_example()
    plain["runs"][0]["case"] = {"workload": workload, **keys}
    assert_refused(plain)
    plain["runs"][0]["case"]["workload"] = "sql"
    VALIDATOR.validate(plain)
    assert from_json(json.dumps(plain)).runs[0].case.workload == "sql"


def test_what_cannot_be_described_is_the_programmers_error() -> None:
    with pytest.raises(TypeError, match=r"Undocumented\.bare has no docstring"):
        json_schema._object(Undocumented, {})
    with pytest.raises(TypeError, match="two types of a report are called Cycling"):
        json_schema._reference(Cycling, {"Cycling": json_schema._object(Load, {})})


@dataclass
class Undocumented:
    """A type whose author forgot one docstring."""

    told: int
    """Described."""
    bare: int
