"""Reports for continuous integration: what test runners, benchmark trackers and GitHub read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from statistics import median
from xml.etree import ElementTree

from sqlstress.analysis.ab import conclusion
from sqlstress.analysis.advice import missing
from sqlstress.analysis.finding import UNPROVED, UNTOLD, WRONG, Part, parts
from sqlstress.analysis.highest_rate import answered, is_whole
from sqlstress.analysis.highest_rate import conclusion as conclusion_of_limit
from sqlstress.analysis.wording import finite, rounded
from sqlstress.report import AbTest, LimitSearch, Report, Run
from sqlstress.show import heading
from sqlstress.show.blocks import brief, clean
from sqlstress.show.endings import failed_too_many
from sqlstress.show.phrases import phrase
from sqlstress.show.trackers import case_names, rates, surroundings, unit
from sqlstress.statistics.sequential import FAIL, PASS

# A report as JUnit XML: a test for each case, which asks whether it was measured and proved.


_OUTCOMES = {"failure": "failures", "error": "errors", "skipped": "skipped"}
"""Element of a test that did not pass → the suite's attribute that counts it."""


def report_junit(*reports: Report) -> str:
    """Return reports as JUnit XML, a suite for each.

    Wrong data is a failure, as are too many operations that failed; what could not be measured is an error;
    what was not measured, or not decided, was skipped.
    """
    suites = ElementTree.Element("testsuites", name="sqlstress")
    suites.extend([_suite(report) for report in reports])
    _count(suites)
    del suites.attrib["skipped"]  # which the schema knows of a suite only
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def _suite(report: Report) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=f"sqlstress on {surroundings(report.environment)}")
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in _properties(report):
        ElementTree.SubElement(properties, "property", name=name, value=brief(value))
    for run, name in zip(report.runs, case_names(report), strict=True):
        suite.append(_test(run, name))
    if report.ab:
        suite.append(_gate(report, report.ab))
    if report.limit:
        suite.append(_limit(report, report.limit))
    suite.extend(map(_part, parts(report)))
    for finding in missing(report):
        left_out = ElementTree.SubElement(
            suite, "testcase", name="cases not measured", classname="sqlstress", time="0"
        )
        _outcome(left_out, "skipped", "interrupted", phrase(finding))
    _count(suite)
    # The schema has no place for a time zone; a report's time is UTC.
    if began := _timestamp(report.created):
        suite.set("timestamp", began)
    return suite


def _properties(report: Report) -> Iterator[tuple[str, str]]:
    yield "measured", heading.origin(report)
    yield "command", " ".join(report.command)
    for build in report.environment.builds:
        yield f"{clean(build.library)} of {clean(build.driver)}", build.version
    for warning in report.environment.warnings:
        yield f"warning {clean(warning.code)}", warning.text


def _test(run: Run, name: str) -> ElementTree.Element:
    seconds = sum(finite(trial.seconds) or 0.0 for trial in run.trials)
    test = ElementTree.Element(
        "testcase", name=name, classname=f"sqlstress.{clean(run.case.workload)}", time=f"{seconds:.3f}"
    )
    verdict = run.verdict
    told = "; ".join(verdict.counterexamples) or "see the JSON report"
    invalid = next((trial.error for trial in run.trials if trial.error), None)
    if verdict.status == "failed":
        _outcome(test, "failure", "data-wrong", f"The data is not what the workers were told it is: {told}")
    elif error := run.error or invalid:
        _outcome(test, "error", "not-measured", error)
    elif run.failed_too_many:
        _outcome(test, "failure", "given-up", failed_too_many(run))
    elif skipped := run.skipped or (None if run.trials else "No trial was made."):
        _outcome(test, "skipped", "not-measured", skipped)
    elif verdict.status == "unknown":
        notes = "; ".join(check.note for check in verdict.checks if check.status == "unknown")
        _outcome(test, "skipped", "undecided", f"Undecided whether the data is right: {notes}")
    output = ElementTree.SubElement(test, "system-out")
    found = [rate for rate in map(finite, rates(run)) if rate is not None]
    output.text = f"{rounded(median(found))} {unit(run)} a second" if found else "no figure"
    return test


def _gate(report: Report, test: AbTest) -> ElementTree.Element:
    gate = ElementTree.Element("testcase", name="B beside A", classname="sqlstress.ab", time="0")
    if test.verdict != PASS:
        kind = "failure" if test.verdict == FAIL else "skipped"
        _outcome(gate, kind, test.verdict, conclusion(report, test))
    return gate


def _limit(report: Report, search: LimitSearch) -> ElementTree.Element:
    limit = ElementTree.Element(
        "testcase",
        name="highest rate",
        classname="sqlstress.limit",
        time=f"{finite(search.seconds) or 0.0:.3f}",
    )
    said = conclusion_of_limit(report, search)
    if not is_whole(answered(report, search)):
        _outcome(limit, "skipped", "inconclusive", said)
    ElementTree.SubElement(limit, "system-out").text = brief(said)
    return limit


def _part(part: Part) -> ElementTree.Element:
    """Return the test of a part that has a verdict of its own."""
    test = ElementTree.Element(
        "testcase",
        name=clean(part.name),
        classname=f"sqlstress.{part.suite}",
        time=f"{finite(part.seconds) or 0.0:.3f}",
    )
    if part.verdict.status == WRONG:
        _outcome(test, "failure", WRONG, phrase(part.verdict.finding))
    elif part.error:
        _outcome(test, "error", "not-measured", part.error)
    elif part.verdict.status in (UNPROVED, UNTOLD):
        _outcome(test, "skipped", part.verdict.status, phrase(part.verdict.finding))
    return test


def _outcome(test: ElementTree.Element, kind: str, code: str, text: str) -> None:
    message = brief(text)
    outcome = ElementTree.SubElement(test, kind, message=message, type=code)
    outcome.text = message


def _count(suites: ElementTree.Element) -> None:
    """Write the numbers of tests and of those that did not pass."""
    tests = list(suites.iter("testcase"))
    suites.set("tests", str(len(tests)))
    for kind, attribute in _OUTCOMES.items():
        suites.set(attribute, str(sum(test.find(kind) is not None for test in tests)))
    suites.set("time", f"{sum(float(test.get('time', 0)) for test in tests):.3f}")


def _timestamp(created: str) -> str | None:
    try:
        return datetime.fromisoformat(created).strftime("%Y-%m-%dT%H:%M:%S")
    except ValueError:
        return None
