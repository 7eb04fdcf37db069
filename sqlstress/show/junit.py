"""A report as JUnit XML. A test passes if its case was measured and the data is right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from statistics import median
from xml.etree import ElementTree

from sqlstress.analysis.ab import conclusion as ab_conclusion
from sqlstress.analysis.advice import missing
from sqlstress.analysis.finding import texts
from sqlstress.analysis.highest_rate import answer_of, is_complete
from sqlstress.analysis.highest_rate import conclusion as limit_conclusion
from sqlstress.analysis.study_parts import NO_ANSWER, UNPROVED, WRONG, parts
from sqlstress.report import Report, Run
from sqlstress.show import heading
from sqlstress.show.blocks import brief, clean
from sqlstress.show.endings import failures_sentence
from sqlstress.show.shown import presenter_of
from sqlstress.show.trackers import case_names, surroundings
from sqlstress.statistics.sequential import FAIL, PASS
from sqlstress.statistics.units import finite, rounded

_OUTCOMES = {"failure": "failures", "error": "errors", "skipped": "skipped"}
"""Attributes of a suite that count its tests by outcome, by name of the outcome's XML element."""


def report_junit(*reports: Report) -> str:
    """Return reports as JUnit XML, with a suite for each report.

    Wrong data and too many failed operations are failures. Cases that could not be measured are errors. Cases
    that were not measured, or whose data could not be verified, are skipped.
    """
    suites = ElementTree.Element("testsuites", name="sqlstress")
    suites.extend([_suite(report) for report in reports])
    _set_counts(suites)
    del suites.attrib["skipped"]  # by JUnit's schema, only a suite has this attribute
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def _suite(report: Report) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=f"sqlstress on {surroundings(report.environment)}")
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in _properties(report):
        ElementTree.SubElement(properties, "property", name=name, value=brief(value))
    suite.extend(_tests(report))
    _set_counts(suite)
    # JUnit's schema does not allow a time zone (here UTC).
    with suppress(ValueError):
        suite.set("timestamp", datetime.fromisoformat(report.created).strftime("%Y-%m-%dT%H:%M:%S"))
    return suite


def _properties(report: Report) -> Iterator[tuple[str, str]]:
    yield "measured", heading.origin(report)
    yield "command", " ".join(report.command)
    for build in report.environment.builds:
        yield f"{clean(build.library)} of {clean(build.driver)}", build.version
    for warning in report.environment.warnings:
        yield f"warning {clean(warning.code)}", warning.text


def _tests(report: Report) -> Iterator[ElementTree.Element]:
    """Yield the tests of a report: one for each case and study, and one for all cases that are missing."""
    for run, name in zip(report.runs, case_names(report), strict=True):
        yield _case(run, name)
    if report.ab:
        gate = _test("B against A", "ab")
        if report.ab.verdict != PASS:
            kind = "failure" if report.ab.verdict == FAIL else "skipped"
            _set_outcome(gate, kind, report.ab.verdict, ab_conclusion(report, report.ab).text)
        yield gate
    if report.limit:
        limit = _test("highest rate", "limit", report.limit.seconds)
        text = " ".join(texts(limit_conclusion(report, report.limit)))
        if not is_complete(answer_of(report, report.limit)):
            _set_outcome(limit, "skipped", "inconclusive", text)
        ElementTree.SubElement(limit, "system-out").text = brief(text)
        yield limit
    for part in parts(report):
        test = _test(clean(part.name), part.suite, part.seconds)
        if part.verdict.status == WRONG:
            _set_outcome(test, "failure", WRONG, part.verdict.finding.text)
        elif part.error:
            _set_outcome(test, "error", "not-measured", part.error)
        elif part.verdict.status in (UNPROVED, NO_ANSWER):
            _set_outcome(test, "skipped", part.verdict.status, part.verdict.finding.text)
        yield test
    for finding in missing(report):
        left_out = _test("cases not measured", "")
        _set_outcome(left_out, "skipped", "interrupted", finding.text)
        yield left_out


def _test(name: str, suite: str, seconds: float | None = None) -> ElementTree.Element:
    """Return a passed test, with the class name "sqlstress.SUITE". `seconds` is its duration."""
    classname = f"sqlstress.{suite}" if suite else "sqlstress"
    time = "0" if seconds is None else f"{finite(seconds) or 0.0:.3f}"
    return ElementTree.Element("testcase", name=name, classname=classname, time=time)


def _case(run: Run, name: str) -> ElementTree.Element:
    test = _test(name, clean(run.case.workload), sum(finite(trial.seconds) or 0.0 for trial in run.trials))
    verdict = run.verdict
    invalid = next((trial.error for trial in run.trials if trial.error), None)
    if verdict.status == "failed":
        examples = "; ".join(verdict.counterexamples) or "see the JSON report"
        _set_outcome(test, "failure", "data-wrong", f"The data is wrong: {examples}")
    elif error := run.error or invalid:
        _set_outcome(test, "error", "not-measured", error)
    elif run.failed_too_many:
        _set_outcome(test, "failure", "given-up", failures_sentence(run))
    elif skipped := run.skipped or (None if run.trials else "No trial was made."):
        _set_outcome(test, "skipped", "not-measured", skipped)
    elif verdict.status == "unknown":
        notes = "; ".join(check.note for check in verdict.checks if check.status == "unknown")
        _set_outcome(test, "skipped", "undecided", f"The data could not be verified: {notes}")
    presenter = presenter_of(run.case)
    rates = [rate for rate in map(finite, presenter.tracked_rates(run)) if rate is not None]
    unit = presenter.tracked_unit(run.case)
    figure = f"{rounded(median(rates))} {unit} per second" if rates else "no figure"
    ElementTree.SubElement(test, "system-out").text = figure
    return test


def _set_outcome(test: ElementTree.Element, kind: str, code: str, text: str) -> None:
    """Record a test's outcome `kind`: failure, error or skipped. `code` is the type of problem."""
    message = brief(text)
    outcome = ElementTree.SubElement(test, kind, message=message, type=code)
    outcome.text = message


def _set_counts(suites: ElementTree.Element) -> None:
    """Set the numbers of tests and of each outcome, and the total time, of a suite or of the root element."""
    tests = list(suites.iter("testcase"))
    suites.set("tests", str(len(tests)))
    for kind, attribute in _OUTCOMES.items():
        suites.set(attribute, str(sum(test.find(kind) is not None for test in tests)))
    suites.set("time", f"{sum(float(test.get('time', 0)) for test in tests):.3f}")
