"""Tests of the files for github-action-benchmark and Bencher, and of the names of cases in them."""

import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from sqlstress.experiments.classics.spec import Picks
from sqlstress.experiments.kv.spec import Checkpointing, Load
from sqlstress.report import Report, Run
from sqlstress.report.case import Case, Settings
from sqlstress.show.junit import report_junit
from sqlstress.show.trackers import bencher_json, case_names, latency_json, surroundings, throughput_json
from tests.example_methods import methods_report
from tests.example_report import example_report, failed_report
from tests.show.hostile import hostile_report
from tests.show.variants import EXAMPLE, UNKNOWN, troubled_report, update_report

ACTION = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["name", "unit", "value"],
        "additionalProperties": False,
        "properties": {
            "name": {"type": "string", "minLength": 1},
            "unit": {"type": "string"},
            "value": {"type": "number"},
            "range": {"type": "string"},
            "extra": {"type": "string"},
        },
    },
}
"""The rows of github-action-benchmark's custom tools, according to its documentation."""
METRIC = {
    "type": "object",
    "required": ["value"],
    "additionalProperties": False,
    "properties": {name: {"type": "number"} for name in ("value", "lower_value", "upper_value")},
}
BENCHER = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": False,
        "properties": {"throughput": METRIC, "latency": METRIC},
    },
}
"""The Bencher Metric Format, according to its documentation, with our two measures."""

WRITERS = (throughput_json, latency_json, bencher_json)
every_writer = pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)


def parse(text: str) -> Any:
    plain = json.loads(text, parse_constant=pytest.fail)
    jsonschema.validate(plain, ACTION if isinstance(plain, list) else BENCHER)
    return plain


def test_throughput_is_the_median_with_the_range_of_the_trials() -> None:
    report = update_report()
    first = parse(throughput_json(report))[0]
    rates = sorted(trial.tps for trial in report.runs[0].trials)
    assert first["value"] == rates[1]
    assert first["range"] == f"{rates[0]:.6g} to {rates[2]:.6g}"
    assert first["extra"] == "median of 3 trials"
    metric = parse(bencher_json(report))[first["name"]]["throughput"]
    assert list(metric.values()) == [rates[1], rates[0], rates[2]]


def test_latency_is_the_99th_percentile_of_each_kind_in_ms_and_in_ns() -> None:
    report = example_report()
    latency = report.runs[0].trials[0].latency["replace"].p99_ns
    assert latency is not None
    found = {entry["name"]: entry for entry in parse(latency_json(report))}
    name = "kv: 1 bucket, 1 process (Linux x86_64): replace p99"
    assert (found[name]["value"], found[name]["unit"]) == (latency / 1e6, "ms")
    assert parse(bencher_json(report))[name] == {"latency": {"value": latency}}


@every_writer
def test_failed_or_unmeasured_case_has_no_figure(write: Any) -> None:
    wrong = {"4 processes": failed_report(), "2 processes": troubled_report()}
    for place, report in wrong.items():
        text = write(report)
        assert f"1 bucket, {place}" not in text
        assert "1 bucket, 1 process" in text


def test_case_of_two_systems_has_two_names() -> None:
    report = example_report()
    host = replace(report.environment.host, system="Windows", machine="AMD64")
    other = replace(report, environment=replace(report.environment, host=host))
    assert len(parse(bencher_json(report, other))) == 2 * len(parse(bencher_json(report)))
    assert len(parse(throughput_json(report, other))) == 16


@every_writer
def test_hostile_texts_stay_texts(write: Any) -> None:
    parse(write(hostile_report()))


def test_methods_have_rows_per_second_only_if_they_were_run() -> None:
    told = {entry["name"].partition(" (")[0]: entry for entry in parse(throughput_json(methods_report()))}
    done = told["methods: insert 10,000 by JSON, peewee, 1 process, driver=peewee, journal-mode=delete"]
    assert (done["value"], done["unit"]) == (375_267.0, "rows/s")
    assert not [name for name in told if "allocate 450 by BLK," in name or "query 100 by BLK," in name]
    assert "375,000 rows per second" in report_junit(methods_report())


# The cases' names, by which trackers identify them.


def names(*cases: Case) -> tuple[str, ...]:
    return case_names(replace(EXAMPLE, runs=tuple(map(Run, cases))))


@pytest.mark.parametrize(
    ("case", "ending"),
    [
        (Case(spec=Load(read_ratio=0.9, batch=10)), "read-ratio=0.9, batch=10"),
        (Case(settings=Settings(synchronous="normal")), "synchronous=normal"),
        (Case(settings=Settings(synchronous=None, fullfsync=True)), "synchronous=unset, fullfsync=on"),
        (Case(settings=Settings(pragmas=(("temp_store", "memory"),))), "temp_store=memory"),
        (Case(driver="apsw", ops=500), "driver=apsw, ops=500"),
        (Case(spec=Load(checkpointing=Checkpointing("passive"))), "mode=passive"),
        (
            Case(workload="keys", spec=Picks("no-key", "uuid7", users=50)),
            "no-key, uuid7, 1 process, users=50",
        ),
    ],
    ids=str,
)
def test_values_other_than_defaults_are_in_the_name(case: Case, ending: str) -> None:
    assert names(case)[0].endswith(f", {ending}") or names(case)[0].endswith(f": {ending}")


def test_precision_of_a_measurement_is_not_in_the_name() -> None:
    other = Case(duration_s=10, warmup_s=2, repeat=5, seed=99, verify="full")
    assert names(other) == names(Case())


def test_name_does_not_depend_on_the_other_cases_of_the_report() -> None:
    whole = case_names(EXAMPLE)
    assert [case_names(replace(EXAMPLE, runs=(run,)))[0] for run in EXAMPLE.runs] == list(whole)


def test_repeated_case_gets_two_names() -> None:
    assert names(Case(), Case()) == ("kv: 1 bucket, 1 process", "kv: 1 bucket, 1 process (2)")


def check_names(report: Report) -> None:
    """Check that names are distinct, and single short lines."""
    found = case_names(report)
    assert len(set(found)) == len(found) == len(report.runs)
    assert all(name.isprintable() and len(name) < 210 for name in found)


def test_environment_is_system_and_architecture() -> None:
    assert surroundings(EXAMPLE.environment) == "Linux x86_64"
    assert surroundings(UNKNOWN) == "Darwin"
    assert surroundings(hostile_report().environment).isprintable()
