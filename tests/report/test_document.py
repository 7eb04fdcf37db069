"""The saved report: writing and reading JSON."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstress.errors import UsageError
from sqlstress.report import FORMAT_VERSION, Report, from_json, to_json
from tests.drawing import CHARACTERS, examples
from tests.example_report import assert_golden, example_report, failed_report
from tests.strategies import reports

TEXT = to_json(example_report())
MAJOR = int(FORMAT_VERSION.split(".")[0])

many_fields = settings(max_examples=examples(0.5))


def changed(**keys: Any) -> str:
    return json.dumps(json.loads(TEXT) | keys)


def refusal(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        from_json(text)
    message = str(caught.value)
    assert len(message) < 260 and message.isprintable()
    return message


def test_example_report_is_written_as_its_golden_file_and_read_from_it() -> None:
    assert_golden("../corpus/golden-kv.json", TEXT)
    assert from_json(TEXT) == example_report()
    again = from_json(to_json(failed_report()))
    assert [run.verdict.status for run in again.runs] == ["ok", "ok", "failed", "ok", "ok", "ok", "ok", "ok"]
    assert len(again.runs[2].verdict.counterexamples) == 2


@pytest.mark.thorough
@many_fields
@given(reports)
def test_any_report_is_read_back_as_it_was_written(report: Report) -> None:
    text = to_json(report)
    assert from_json(text) == report
    assert text.isascii() and text.endswith("}\n")


def test_undecodable_command_is_saved_and_nan_is_refused() -> None:
    report = replace(example_report(), command=("sqlstress", "--dir", "caf\udce9"))
    assert from_json(to_json(report)).command[2] == r"caf\udce9"
    trial = replace(example_report().runs[0].trials[0], tps=float("nan"))
    run = replace(example_report().runs[0], trials=(trial,))
    with pytest.raises(ValueError, match=r"^runs\[0\]\.trials\[0\]\.tps: NaN"):
        to_json(replace(example_report(), runs=(run,)))


def test_unknown_keys_and_a_later_minor_version_are_accepted() -> None:
    plain = json.loads(TEXT)
    for place in (
        plain,
        plain["environment"]["host"],
        plain["runs"][0]["case"],
        plain["runs"][0]["trials"][0],
    ):
        place["from_the_future"] = {"a": [1, None]}
    assert from_json(json.dumps(plain)) == example_report()
    assert from_json(changed(format_version=f"{MAJOR}.99")).runs == example_report().runs
    assert from_json(TEXT.replace("{", '{"planned": 3,', 1)).planned == 8


@pytest.mark.parametrize("version", [f"{MAJOR + 1}.0", f"{MAJOR}0.0", "0.9"])
def test_another_major_version_is_refused_with_advice(version: str) -> None:
    assert f"format {version}" in refusal(changed(format_version=version))
    assert "Use the version that wrote it" in refusal(changed(format_version=version))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("workload", "graph", "this sqlstress has no experiment 'graph'."),
        ("driver", "turso", "this sqlstress has no driver 'turso'."),
    ],
)
def test_unknown_experiment_or_driver_is_refused(field: str, value: str, message: str) -> None:
    plain = json.loads(TEXT)
    plain["runs"][0]["case"][field] = value
    assert message in refusal(json.dumps(plain))


@pytest.mark.parametrize(("place", "key"), [("crash", "power"), ("choice", "tune"), ("choice", "presets")])
def test_results_of_removed_abilities_are_refused(place: str, key: str) -> None:
    text = refusal(changed(**{place: {key: {}}}))
    assert "any more. Use the version that wrote the report." in text
    assert from_json(changed(**{place: {key: None}})) == example_report()


def test_fair_waits_are_refused_and_the_default_is_ignored() -> None:
    plain = json.loads(TEXT)
    settings = plain["runs"][0]["case"]["settings"]
    settings["busy"] = "fair"
    text = refusal(json.dumps(plain))
    assert text == "this sqlstress has no --busy fair any more. Use the version that wrote the report."
    settings["busy"] = "default"
    assert from_json(json.dumps(plain)) == example_report()


def test_trial_of_a_removed_fleet_option_is_refused() -> None:
    plain = json.loads(TEXT)
    plain["runs"][0]["trials"][0]["together"] = None
    assert from_json(json.dumps(plain)) == example_report()
    plain["runs"][0]["trials"][0]["together"] = {"host": "anna"}
    assert "has no fleet --together any more. Use the version" in refusal(json.dumps(plain))


@pytest.mark.parametrize(
    "version", [None, 1, 1.0, [], "", "1", "1.x", "one", "1.0.0", "٣.0", "1.0\x1b[31m", "1" * 9999]
)
def test_malformed_version_is_refused(version: object) -> None:
    assert "format_version" in refusal(changed(format_version=version))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        "\ufeff{}",
        "NaN",
        "[" * 200_000,
        '{"a":' * 200_000,
        "9" * 10_000,
        '{"format_version": "1.0"}',
        '{"format_version": "1.0", "created": "\\ud800"}',
        "\ud800",
    ],
)
def test_text_that_is_no_report_is_refused_in_a_short_line(text: str) -> None:
    assert refusal(text).startswith("not a sqlstress report: ")


def test_invalid_histogram_is_refused() -> None:
    plain = json.loads(TEXT)
    for bucket in ([-1, 1], [0x7F7F, 1], [2**64 - 1, 1], [1000, -1]):
        plain["runs"][0]["trials"][0]["latency"]["get"]["buckets"] = [[1000, 5], bucket]
        message = "runs[0].trials[0].latency.get: it has wrong histogram buckets"
        assert message in refusal(json.dumps(plain))


def test_report_larger_than_any_plan_makes_is_refused() -> None:
    assert "it has more than 500,000 texts and names" in refusal('["' + '","' * 500_000 + '"]')
    assert "it has more than 1,000 runs" in refusal(changed(runs=[{}] * 1001))
    assert "runs[0].case: missing" in refusal(changed(runs=[{}] * 1000))
    assert "it has more than 2,000 runs" in refusal(changed(ab={"metric": "tps"}, runs=[{}] * 2001))
    assert "runs[0].case: missing" in refusal(changed(ab={"metric": "tps"}, runs=[{}] * 2000))
    plain = json.loads(TEXT)
    latency = plain["runs"][1]["trials"][0]["latency"]
    latency |= {f"kind {number}": latency["get"] for number in range(19)}
    message = "runs[1].trials[0]: it has more than 20 kinds of operations"
    assert message in refusal(json.dumps(plain))


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_nan_and_infinity_are_refused_even_under_an_unknown_key(constant: str) -> None:
    assert f"{constant} is not JSON" in refusal(TEXT.replace("{", f'{{"unknown": {constant},', 1))


def paths(plain: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    members = (
        plain.items() if isinstance(plain, dict) else enumerate(plain) if isinstance(plain, list) else ()
    )
    return [here, *(path for key, value in members for path in paths(value, (*here, key)))]


PLACES = paths(json.loads(to_json(replace(example_report(), runs=example_report().runs[:1]))))[1:]
VALUES: list[Any] = [None, True, -1, 2**70, 1.5, 1e308, "", "x", "\ud800", [], [[]], {}, {"": {}}, [None] * 3]


@many_fields
@given(st.sampled_from(PLACES), st.sampled_from(VALUES))
def test_any_value_in_any_place_is_read_or_a_usage_error(place: tuple[Any, ...], value: Any) -> None:
    plain = json.loads(to_json(replace(example_report(), runs=example_report().runs[:1])))
    parent = plain
    for key in place[:-1]:
        parent = parent[key]
    parent[place[-1]] = value
    read_or_refuse(json.dumps(plain))


def read_or_refuse(text: str) -> None:
    try:
        report = from_json(text)
    except UsageError as error:
        assert len(str(error)) < 260
    else:
        assert from_json(to_json(report)) == report


@given(st.text(CHARACTERS, max_size=200))
def test_any_text_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        from_json(text)
