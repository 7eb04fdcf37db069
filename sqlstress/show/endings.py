"""How a study ended: exit codes, and a line for each thing that is not as it should be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sqlstress.analysis.ab import conclusion
from sqlstress.analysis.finding import UNPROVED, UNTOLD, WRONG, parts, progress
from sqlstress.analysis.highest_rate import answered, is_whole
from sqlstress.analysis.wording import percent, place, plural
from sqlstress.errors import Interrupted
from sqlstress.experiment import face_of
from sqlstress.report import LimitSearch, Report, Run
from sqlstress.show.phrases import phrase
from sqlstress.statistics.sequential import FAIL, INCONCLUSIVE

FINE, BAD, UNSURE, FAILURE = 0, 1, 3, 4
"""All is well; wrong data, or a regression; nothing is shown; something could not be measured."""


class Ending(NamedTuple):
    """Something that is not as it should be."""

    code: int
    """The exit code that it asks for."""
    text: str = ""
    """What is wrong, in a line; empty where the report itself says so."""
    reason: str = ""
    """What the report says of it: for those who are not shown the report."""


def endings(report: Report, *, strict: bool = False, saved: Sequence[str] = ()) -> tuple[Ending, ...]:
    """Return what is not as it should be, the weightiest first; nothing when all is well.

    `saved` names the files that hold the report. `strict`: an answer that can't be told is not well.
    """
    if report.results:
        found = _of_results(report, strict, saved)
    elif report.ab:
        found = _of_ab(report, strict, saved)
    elif report.limit:
        found = _of_limit(report, report.limit, strict, saved)
    else:
        found = _of_cases(report, saved)
    return tuple(found)


def exit_code(found: Sequence[Ending]) -> int:
    """Return the exit code that endings ask for."""
    return found[0].code if found else FINE


def _stopped(after: str, what: str, saved: Sequence[str]) -> Ending:
    kept = f"; {what} is in {', '.join(saved)}" if saved else ""
    return Ending(Interrupted.exit_code, f"Stopped after {after}{kept}.")


def _of_cases(report: Report, saved: Sequence[str]) -> Iterator[Ending]:
    if report.interrupted:
        yield _stopped(_so_far(report), "what was measured", saved)
    wrong = next((run.verdict for run in report.runs if run.verdict.status == "failed"), None)
    if wrong:
        example = next(iter(wrong.counterexamples), "see the report")
        yield Ending(BAD, f"Error: the data is not what the workers were told it is: {example}.")
    yield from _too_many(report)
    failed = [run for run in report.runs if run.error]
    if failed:
        more = len(failed) - 1
        others = f" (and {more} {'case' if more == 1 else 'cases'} more)" if more else ""
        reason = (failed[0].error or "").removesuffix(".")
        text = f"Error: {failed[0].case.label} could not be measured: {reason}{others}."
        yield Ending(FAILURE, text)


def _of_limit(report: Report, search: LimitSearch, strict: bool, saved: Sequence[str]) -> Iterator[Ending]:
    if report.interrupted:
        windows = sum(len(run.trials) for run in report.runs)
        yield _stopped(plural(windows, "window"), "what was measured", saved)
    else:
        yield from _of_cases(report, saved)
        if strict and not is_whole(answered(report, search)):
            yield Ending(UNSURE)


def _so_far(report: Report) -> str:
    """Return how far a sweep had come: over some of its cases, or over all of them a few times."""
    if len(report.runs) < report.planned:
        return f"{len(report.runs)} of {report.planned} cases"
    done, wanted = (
        sum(counts)
        for counts in ([len(run.trials) for run in report.runs], [run.case.repeat for run in report.runs])
    )
    return f"{done} of {plural(wanted, 'trial')}"


def failed_too_many(run: Run) -> str:
    """Return how many of a run's operations failed, where those are more than its case lets."""
    share, most = percent(run.failed_share()), percent(run.case.max_failed)
    return (
        f"{share} of the operations failed at {place(run.case)}: {face_of(run.case).show().why_failed(run)}. "
        f"At most {most} may (--max-failed)."
    )


def _too_many(report: Report) -> Iterator[Ending]:
    """Yield that operations were given up, more than their case lets: its figures are no success then."""
    found = [run for run in report.runs if run.failed_too_many]
    if found:
        yield Ending(BAD, f"Error: {failed_too_many(max(found, key=Run.failed_share))}")


def _of_ab(report: Report, strict: bool, saved: Sequence[str]) -> Iterator[Ending]:
    """Yield one ending at most: the others follow from it."""
    assert report.ab
    failed = next((run for run in report.runs if run.error), None)
    if report.interrupted:
        slices = sum(len(run.trials) for run in report.runs)
        yield _stopped(f"{slices} slices", "what was measured", saved)
    elif report.ab.verdict == FAIL:
        yield Ending(BAD, f"Error: {conclusion(report, report.ab)}")
    elif failed:
        reason = (failed.error or "").removesuffix(".")
        text = f"Error: {failed.arm}, {failed.case.label}, could not be measured: {reason}."
        yield Ending(FAILURE, text)
    elif strict and report.ab.verdict == INCONCLUSIVE:
        yield Ending(UNSURE)


def _of_results(report: Report, strict: bool, saved: Sequence[str]) -> Iterator[Ending]:
    if report.interrupted:
        yield _stopped(progress(report), "what was measured" if report.runs else "what was proved", saved)
    tried = parts(report)
    for part in tried:
        if part.verdict.status == WRONG:
            yield Ending(BAD, reason=f"Error: {phrase(part.verdict.finding)}")
    for part in tried:
        if part.error:
            yield Ending(FAILURE, f"Error: {part.name} was not tried to its end: {part.error}")
        if part.verdict.status == UNPROVED or (strict and part.verdict.status == UNTOLD):
            yield Ending(UNSURE)
