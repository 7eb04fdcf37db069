"""Tests of JUnit XML, with a JUnit parser and with the rules of its schema."""

from dataclasses import replace
from xml.etree import ElementTree

import junitparser
import pytest

from sqlstress.analysis.advice import missing
from sqlstress.analysis.study_parts import parts
from sqlstress.report import Report
from sqlstress.show.junit import report_junit
from tests.ab_report import ab_report, around
from tests.example_report import failed_report
from tests.show.hostile import hostile_report
from tests.show.variants import EXAMPLE, each_run

ALLOWED = {
    "testsuites": ({"name", "tests", "failures", "errors", "time"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
        {"properties", "testcase"},
    ),
    "properties": (set(), {"property"}),
    "property": ({"name", "value"}, set()),
    "testcase": ({"name", "classname", "time"}, {"skipped", "error", "failure", "system-out"}),
    "failure": ({"message", "type"}, set()),
    "error": ({"message", "type"}, set()),
    "skipped": ({"message", "type"}, set()),
    "system-out": (set(), set()),
}
"""Element → its attributes and children, among those that jenkins-junit.xsd allows."""


def outcomes(*written: Report) -> dict[str, str]:
    """Return the outcome of each test, from a JUnit parser; check that the totals equal the tests."""
    found: dict[str, str] = {}
    for suite in junitparser.JUnitXml.fromstring(report_junit(*written).encode()):
        cases = list(suite)
        kinds = [type(case.result[0]).__name__ if case.result else "passed" for case in cases]
        assert suite.tests == len(cases)
        counted = (suite.failures, suite.errors, suite.skipped)
        assert counted == tuple(map(kinds.count, ("Failure", "Error", "Skipped")))
        found |= {case.name: kind for case, kind in zip(cases, kinds, strict=True)}
    return found


def check_xml(text: str) -> None:
    """Check that the XML of a report keeps the rules of the schema."""
    for element in ElementTree.fromstring(text).iter():
        attributes, children = ALLOWED[element.tag]
        assert set(element.attrib) <= attributes
        assert {child.tag for child in element} <= children
        if element.tag == "testcase":
            assert sum(child.tag != "system-out" for child in element) <= 1
            assert float(element.attrib["time"]) >= 0


def check_rules(report: Report) -> None:
    """Check that a report keeps the rules of the schema and has a test for each run and part."""
    check_xml(report_junit(report))
    beside = (report.ab is not None) + (report.limit is not None) + len(parts(report))
    assert len(outcomes(report)) == len(report.runs) + len(missing(report)) + beside


def test_unneeded_case_counts_as_skipped() -> None:
    run = replace(EXAMPLE.runs[0], trials=(), skipped="a smaller one took too long")
    assert list(outcomes(replace(EXAMPLE, runs=(run,))).values()) == ["Skipped"]


def test_invalid_trial_is_an_error_even_if_its_run_has_none() -> None:
    run = EXAMPLE.runs[0]
    late = replace(run, trials=(replace(run.trials[0], error="worker 1 came late"),))
    assert list(outcomes(replace(EXAMPLE, runs=(late,))).values()) == ["Error"]


def test_wrong_data_stays_a_failure_though_the_run_has_an_error_too() -> None:
    died = each_run(lambda run: replace(run, error="worker 1 was killed"), failed_report())
    assert outcomes(died)["kv: 1 bucket, 4 processes"] == "Failure"


def test_several_reports_are_several_suites() -> None:
    root = ElementTree.fromstring(report_junit(EXAMPLE, failed_report()))
    assert [suite.attrib["failures"] for suite in root] == ["0", "1"]
    assert root.attrib["tests"] == "16"


def test_hostile_texts_stay_texts_of_bounded_length() -> None:
    text = report_junit(hostile_report())
    assert len(outcomes(hostile_report())) == len(EXAMPLE.runs)
    assert len(text) < 100_000
    assert "<script" not in text


@pytest.mark.parametrize(
    ("ratio", "outcome"),
    [(1.0, "passed"), (0.5, "Failure"), (0.92, "Skipped")],
    ids=["pass", "fail", "unsure"],
)
def test_ab_test_is_its_own_test(ratio: float, outcome: str) -> None:
    found = outcomes(ab_report([around(ratio, 30, 0.1)]))
    assert found.pop("B against A") == outcome
    assert set(found.values()) == {"passed"}
    assert {name[:3] for name in found} == {"A, ", "B, "}
