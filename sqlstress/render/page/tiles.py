"""What stands at the top of a page: the figures that are looked for first."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.ab import found_change
from sqlstress.analysis.finding import results
from sqlstress.analysis.group import rate_of
from sqlstress.analysis.wording import place, rounded, whole
from sqlstress.display.shown import Tile
from sqlstress.experiment import face_of
from sqlstress.render.page.markup import element, text
from sqlstress.report import AbTest, Report, Run
from sqlstress.statistics.gate import FAIL, INCONCLUSIVE, PASS, UNDECIDED
from sqlstress.statistics.units import format_ms

_PROOF = {
    "ok": ("proved", "no acknowledged write was lost"),
    "failed": ("FAILED", "the data is wrong"),
    "unknown": ("undecided", "whether the data is right"),
    "skipped": ("unproved", "nothing was checked"),
}
_GATE = {
    FAIL: ("FAIL", "failed"),
    PASS: ("pass", "ok"),
    INCONCLUSIVE: ("inconclusive", "unknown"),
    UNDECIDED: ("undecided", "unknown"),
}


def tiles(report: Report) -> str:
    """Return the figures that are looked for first."""
    return element(
        "div",
        *(
            element("div", element("strong", text(value)), element("span", text(what)), class_=f"tile {kind}")
            for value, what, kind in _tiles(report)
        ),
        class_="tiles",
    )


def _tiles(report: Report) -> Iterator[Tile]:
    if report.results:
        for experiment, found in results(report):
            yield from experiment.show_result().tiles(found)
        return
    yield from _gate(report, report.ab) if report.ab else _best(report)
    yield from _trust(report)


def _gate(report: Report, test: AbTest) -> Iterator[Tile]:
    verdict, kind = _GATE.get(test.verdict, _GATE[UNDECIDED])
    yield verdict, found_change(report, test) or "B beside A", kind


def _best(report: Report) -> Iterator[Tile]:
    """Yield the highest rate of the report's first experiment: those of others count something else."""
    found = [(rate, run) for run in report.runs if (rate := rate_of(run))]
    own = [one for one in found if _counted(one[1]) == _counted(found[0][1])]
    if own:
        rate, best = max(own, key=lambda one: one[0])
        yield rounded(rate), f"{_counted(best)} a second at most: {place(best.case)}", ""


def _counted(run: Run) -> str:
    return face_of(run.case).rate_counts


def _trust(report: Report) -> Iterator[Tile]:
    """Yield how far the figures can be trusted."""
    statuses = [run.verdict.status for run in report.runs]
    status = next((one for one in ("failed", "unknown", "ok", "skipped") if one in statuses), "skipped")
    yield (*_PROOF[status], status)
    failed = sum(run.error is not None for run in report.runs)
    amount = f"{whole(len(report.runs))} of {whole(max(report.planned, len(report.runs)))}"
    errors = f", {whole(failed)} with errors" if failed else ""
    if report.published is not None:
        yield whole(len(report.runs) - failed), "cases published", ""
    else:
        yield amount, f"cases measured{errors}", "failed" * bool(failed)
    if sync := report.environment.sync:
        yield f"{format_ms(sync.overwrite_p50_ns)} ms", f"one {sync.primitive} (p50)", ""
