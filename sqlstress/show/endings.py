"""Problems at the end of a measurement, each with an exit code and a line for standard error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sqlstress.analysis.ab import conclusion, too_many_failed
from sqlstress.analysis.highest_rate import answer_of, is_complete
from sqlstress.analysis.study_parts import NO_ANSWER, UNPROVED, WRONG, parts, progress
from sqlstress.analysis.wording import percent, place
from sqlstress.errors import Interrupted
from sqlstress.experiment import case_label
from sqlstress.report import AbTest, LimitSearch, Report, Run
from sqlstress.show.shown import presenter_of
from sqlstress.statistics.sequential import FAIL, INCONCLUSIVE
from sqlstress.statistics.units import plural

FINE, BAD, UNSURE, FAILURE = 0, 1, 3, 4
"""Exit codes: no problem; wrong data or a regression; no clear answer; a case could not be measured."""


class Ending(NamedTuple):
    """Problem of a measurement, with its exit code."""

    code: int
    text: str = ""
    """Line for standard error; empty if the report itself states the problem."""
    reason: str = ""
    """Line for standard error if `text` is empty and the report, which states the problem, is not printed."""


def endings(report: Report, *, strict: bool = False, saved: Sequence[str] = ()) -> tuple[Ending, ...]:
    """Return the problems of a measurement, the most severe first.

    `saved` has the names of files that contain the report. With `strict`, a study (such as a search) without
    an answer is a problem.
    """
    if report.results:
        problems = _result_endings(report, strict, saved)
    elif report.ab:
        problems = _ab_endings(report, report.ab, strict, saved)
    elif report.limit:
        problems = _limit_endings(report, report.limit, strict, saved)
    else:
        problems = _case_endings(report, saved)
    return tuple(problems)


def exit_code(found: Sequence[Ending]) -> int:
    """Return the exit code of the first problem; FINE without a problem."""
    return found[0].code if found else FINE


def _stopped(after: str, saved: Sequence[str], what: str = "what was measured") -> Ending:
    """Return an ending such as "Stopped after 3 of 8 cases; what was measured is in report.json."."""
    kept = f"; {what} is in {', '.join(saved)}" if saved else ""
    return Ending(Interrupted.exit_code, f"Stopped after {after}{kept}.")


def _case_endings(report: Report, saved: Sequence[str]) -> Iterator[Ending]:
    if report.interrupted:
        so_far = f"{len(report.runs)} of {report.planned} cases"
        if len(report.runs) >= report.planned:  # all cases were started, so count trials
            requested = sum(run.case.repeat for run in report.runs)
            so_far = f"{_trials(report)} of {plural(requested, 'trial')}"
        yield _stopped(so_far, saved)
    wrong = next((run.verdict for run in report.runs if run.verdict.status == "failed"), None)
    if wrong:
        example = next(iter(wrong.counterexamples), "see the report")
        yield Ending(BAD, f"Error: the data is wrong: {example}.")
    # Too many failed operations are a problem, even if all cases were measured.
    if too_many := [run for run in report.runs if run.failed_too_many]:
        yield Ending(BAD, f"Error: {failures_sentence(max(too_many, key=Run.failed_share))}")
    if failed := [run for run in report.runs if run.error]:
        count = len(failed) - 1
        further = f" (and {count} more {'case' if count == 1 else 'cases'})" if count else ""
        yield Ending(FAILURE, _not_measured(failed[0], case_label(failed[0].case), further))
    if any(presenter_of(run.case).is_doubtful(run) for run in report.runs):
        yield Ending(UNSURE, "Error: statements of a transaction are suspicious; see the report (--strict).")


def _trials(report: Report) -> int:
    return sum(len(run.trials) for run in report.runs)


def _not_measured(run: Run, label: str, further: str = "") -> str:
    return f"Error: {label} could not be measured: {(run.error or '').removesuffix('.')}{further}."


def _limit_endings(
    report: Report, search: LimitSearch, strict: bool, saved: Sequence[str]
) -> Iterator[Ending]:
    if report.interrupted:
        yield _stopped(plural(_trials(report), "window"), saved)
    else:
        yield from _case_endings(report, saved)
        if strict and not is_complete(answer_of(report, search)):
            yield Ending(UNSURE)


def failures_sentence(run: Run) -> str:
    """Return a sentence on a run in which more operations failed than --max-failed allows."""
    share, most = percent(run.failed_share()), percent(run.case.max_failed)
    return (
        f"{share} of the operations failed at {place(run.case)}: "
        f"{presenter_of(run.case).failure_reason(run)}. At most {most} may fail (--max-failed)."
    )


def _ab_endings(report: Report, test: AbTest, strict: bool, saved: Sequence[str]) -> Iterator[Ending]:
    """Yield only the most severe problem of an A/B test, because other problems follow from it."""
    failed = next((run for run in report.runs if run.error), None)
    if report.interrupted:
        yield _stopped(plural(_trials(report), "slice"), saved)
    elif test.verdict == FAIL or too_many_failed(report):
        yield Ending(BAD, f"Error: {conclusion(report, test).text}")
    elif failed:
        yield Ending(FAILURE, _not_measured(failed, f"{failed.arm}, {case_label(failed.case)},"))
    elif strict and test.verdict == INCONCLUSIVE:
        yield Ending(UNSURE)


def _result_endings(report: Report, strict: bool, saved: Sequence[str]) -> Iterator[Ending]:
    if report.interrupted:
        yield _stopped(progress(report), saved, "what was measured" if report.runs else "what was proved")
    all_parts = parts(report)
    for part in all_parts:
        if part.verdict.status == WRONG:
            yield Ending(BAD, reason=f"Error: {part.verdict.finding.text}")
    for part in all_parts:
        if part.error:
            yield Ending(FAILURE, f"Error: {part.name} was not completed: {part.error}")
        if part.verdict.status == UNPROVED or (strict and part.verdict.status == NO_ANSWER):
            yield Ending(UNSURE)
