"""A report in GitHub Actions: the summary of a step, and annotations (errors and warnings).

An annotation is a workflow command: a line `::error title=TITLE::TEXT` on standard output. Source of the
rules for escapes: actions/toolkit, packages/core/src/command.ts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from sqlstress.analysis.ab import conclusion
from sqlstress.analysis.advice import missing
from sqlstress.analysis.baseline import BaselineCheck
from sqlstress.analysis.finding import texts
from sqlstress.analysis.highest_rate import answer_of, is_complete
from sqlstress.analysis.highest_rate import conclusion as conclusion_of_limit
from sqlstress.analysis.study_parts import NO_ANSWER, UNPROVED, WRONG, parts
from sqlstress.report import Report
from sqlstress.show.blocks import brief, clean
from sqlstress.show.endings import failures_sentence
from sqlstress.show.markdown import check_markdown, report_markdown
from sqlstress.show.study_view import check_verdict, left_out
from sqlstress.show.trackers import case_names
from sqlstress.statistics.sequential import FAIL, INCONCLUSIVE, PASS

MOST = 10
"""Maximum number of errors, and of warnings, that GitHub shows for a step."""
MAX_SUMMARY_BYTES = 1 << 20
"""Size in bytes from which GitHub refuses a step's summary."""

_TEXT = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = {**_TEXT, **str.maketrans({":": "%3A", ",": "%2C"})}


def workflow_commands(*reports: Report) -> tuple[str, ...]:
    """Return annotations for the problems of reports: at most MOST errors, then at most MOST warnings."""
    errors = list(chain.from_iterable(map(_errors, reports)))
    warnings = list(dict.fromkeys(chain.from_iterable(map(_warnings, reports))))
    return (*_commands("error", errors), *_commands("warning", warnings))


def check_commands(checked: BaselineCheck, metric: str, max_drop: float) -> tuple[str, ...]:
    """Return annotations for a check of `metric` (tps or p99). `max_drop` is the allowed drop, as a share."""
    sentence = check_verdict(checked, metric, max_drop)
    errors, warnings = list[tuple[str, str]](), list[tuple[str, str]]()
    if checked.verdict == FAIL:
        invalid = "Too many operations failed" if checked.failed else "Wrong data"
        errors.append(("Worse than the baseline" if checked.cases else invalid, sentence))
    if checked.verdict == INCONCLUSIVE:
        warnings.append(("Cannot tell whether it is worse than the baseline", sentence))
    if checked.left_out > 0:
        warnings.append(("Not measured again", left_out(checked)))
    return (*_commands("error", errors), *_commands("warning", warnings))


def check_summary(checked: BaselineCheck, metric: str, max_drop: float) -> str:
    """Return the summary of a check in Markdown, or a short sentence if it is too large for GitHub."""
    return _accepted(check_markdown(checked, metric, max_drop))


def summary(*reports: Report) -> str:
    """Return the summary of reports in Markdown, or a short sentence if it is too large for GitHub."""
    return _accepted(report_markdown(*reports))


def _accepted(text: str) -> str:
    if len(text.encode("utf-8", "backslashreplace")) < MAX_SUMMARY_BYTES:
        return text
    return "The report is too large for a step's summary: save it with -o report.html.\n"


def _errors(report: Report) -> Iterator[tuple[str, str]]:
    for part in parts(report):
        if part.verdict.status == WRONG:
            yield f"{part.kind}: {part.name}", part.verdict.finding.text
        elif part.error:
            yield f"{part.kind}: {part.name}", part.error
    if report.ab and report.ab.verdict == FAIL:
        yield "B is worse than A", conclusion(report, report.ab).text
    for run, name in zip(report.runs, case_names(report), strict=True):
        if run.verdict.status == "failed":
            examples = "; ".join(run.verdict.counterexamples[:3]) or "see the report"
            yield f"Wrong data: {name}", f"The data is wrong: {examples}"
        elif run.error:
            yield f"Not measured: {name}", run.error
        elif run.failed_too_many:
            yield f"Too many operations failed: {name}", failures_sentence(run)


def _warnings(report: Report) -> Iterator[tuple[str, str]]:
    for part in parts(report):
        if part.verdict.status in (UNPROVED, NO_ANSWER):
            yield f"{part.kind}: {part.name}", part.verdict.finding.text
    for finding in missing(report):
        yield "Not everything was measured", finding.text
    if report.ab and report.ab.verdict not in (PASS, FAIL):
        yield "Cannot tell whether B is as good as A", conclusion(report, report.ab).text
    if report.limit and not is_complete(answer_of(report, report.limit)):
        yield "Cannot tell which rate holds", " ".join(texts(conclusion_of_limit(report, report.limit)))
    for warning in report.environment.warnings:
        if warning.serious:
            yield warning.code, warning.text
    for run, name in zip(report.runs, case_names(report), strict=True):
        for warning in run.warnings:
            yield name, warning.text
        if run.verdict.status == "unknown":
            yield f"Undecided: {name}", "The data could not be verified."


def _commands(kind: str, annotations: list[tuple[str, str]]) -> Iterator[str]:
    """Yield at most MOST annotations, from pairs (title, text). `kind` is "error" or "warning"."""
    if len(annotations) > MOST:
        annotations = [
            *annotations[: MOST - 1],
            ("And more", f"{len(annotations) - MOST + 1} more: see the step's summary."),
        ]
    for title, text in annotations:
        yield f"::{kind} title={clean(title).translate(_PROPERTY)}::{brief(text).translate(_TEXT)}"
