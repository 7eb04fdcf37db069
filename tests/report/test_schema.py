"""The published JSON Schema."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from sqlstress.errors import UsageError
from sqlstress.experiments.classics.spec import Cycling
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


def described_fields(node: Any) -> list[dict[str, Any]]:
    if not isinstance(node, dict):
        return []
    own_fields = list(node.get("properties", {}).values())
    children = [*node.get("$defs", {}).values(), *(rule["then"] for rule in node.get("allOf", []))]
    return own_fields + [described_field for child in children for described_field in described_fields(child)]


def test_shipped_schema_equals_the_generated_one() -> None:
    assert json_schema.schema_text() == json_schema.generated_text(), f"stale: {COMMAND} rewrites it"


def test_module_run_as_a_command_rewrites_the_shipped_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    copy = tmp_path / "json_schema.py"
    code = Path(json_schema.__file__).read_text(encoding="utf-8")
    copy.write_text(code, encoding="utf-8")
    exec(compile(code, str(copy), "exec"), {"__name__": "__main__", "__file__": str(copy)})
    assert (tmp_path / json_schema.FILE_NAME).read_text(encoding="utf-8") == json_schema.schema_text()


def test_schema_is_valid_and_describes_every_field() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"].endswith("/2020-12/schema")
    assert SCHEMA["$id"].startswith("urn:")
    fields = described_fields(SCHEMA)
    assert len(fields) > 100
    assert all(field["description"].strip().endswith((".", "?")) for field in fields)
    known_fields = {
        f"{name}.{field}" for name, node in SCHEMA["$defs"].items() for field in node["properties"]
    }
    known_fields |= {f"Report.{field}" for field in SCHEMA["properties"]}
    assert json_schema._CONSTRAINTS.keys() <= known_fields


def test_example_reports_are_valid() -> None:
    for report in (example_report(), failed_report()):
        VALIDATOR.validate(json.loads(to_json(report)))


@settings(max_examples=examples(0.4))
@given(reports)
def test_every_report_that_can_be_written_is_valid(report: Report) -> None:
    VALIDATOR.validate(json.loads(to_json(report)))


def test_unknown_keys_later_minor_versions_and_null_are_valid() -> None:
    plain = plain_example()
    plain["unknown"] = plain["runs"][0]["unknown"] = 1
    VALIDATOR.validate(plain)
    assert VALIDATOR.is_valid(plain_example() | {"format_version": "1.7"})
    assert not VALIDATOR.is_valid(plain_example() | {"format_version": "2.0"})
    plain = plain_example()
    plain["runs"][0]["case"]["settings"]["synchronous"] = None
    VALIDATOR.validate(plain)


def assert_refused(plain: Any) -> None:
    """Assert that both the schema and the reader refuse a report."""
    assert not VALIDATOR.is_valid(plain)
    with pytest.raises(UsageError):
        from_json(json.dumps(plain))


def test_missing_required_key_is_refused_by_schema_and_reader() -> None:
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
def test_wrong_type_is_refused_by_schema_and_reader(name: str, value: Any) -> None:
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
def test_value_outside_an_enumeration_is_not_valid(part: str, name: str, value: Any) -> None:
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
def test_spec_of_a_case_is_checked_by_schema_and_reader(workload: str, keys: dict[str, Any]) -> None:
    plain = plain_example()
    plain["runs"][0]["case"] = {"workload": workload, **keys}
    assert_refused(plain)
    plain["runs"][0]["case"]["workload"] = "sql"
    VALIDATOR.validate(plain)
    assert from_json(json.dumps(plain)).runs[0].case.workload == "sql"


def test_undocumented_or_ambiguous_type_raises_type_error() -> None:
    with pytest.raises(TypeError, match=r"Undocumented\.bare has no docstring"):
        json_schema._object(Undocumented, {})
    with pytest.raises(TypeError, match="two types of a report are called Cycling"):
        json_schema._reference(Cycling, {"Cycling": json_schema._object(Load, {})})


@dataclass
class Undocumented:
    """A type with a missing docstring."""

    told: int
    """Described."""
    bare: int
