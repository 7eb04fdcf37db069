"""Facts of a page: at its top the figures looked for first, at its end the environment and the command."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from html import escape

from sqlstress.analysis.ab_verdict import found_change
from sqlstress.analysis.builds import telling
from sqlstress.analysis.finding import results
from sqlstress.analysis.group import rate_of
from sqlstress.analysis.limit import answered, promised
from sqlstress.analysis.wording import percent, place, rounded, whole
from sqlstress.display.clean import visible
from sqlstress.display.shown import Tile
from sqlstress.experiment import face_of
from sqlstress.render.page.markup import element, sentence, text
from sqlstress.report import AbTest, Environment, Report, Run, SqliteBuild, SyncCost
from sqlstress.report.limit import LimitSearch
from sqlstress.statistics.gate import FAIL, INCONCLUSIVE, PASS, UNDECIDED
from sqlstress.statistics.units import format_count, format_ms

_PROOF = {
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
    if report.ab:
        yield from _gate(report, report.ab)
    elif report.limit:
        yield from _limit(report, report.limit)
    else:
        yield from _best(report)
    yield from _trust(report)


def _gate(report: Report, test: AbTest) -> Iterator[Tile]:
    verdict, kind = _GATE.get(test.verdict, _GATE[UNDECIDED])
    yield verdict, found_change(report, test) or "B beside A", kind


def _limit(report: Report, search: LimitSearch) -> Iterator[Tile]:
    found, what = answered(report, search), promised(search.promise)
    for rate, said in ((found.holds, "holds"), (found.breaks, "does not hold")):
        if rate is not None:
            yield f"{whole(rate)}/s", f"{said} {what}", ""
    if found.holds is None and found.breaks is None:
        yield "can't tell", f"which rate holds {what}", "unknown"


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
    if status == "ok" and any(run.failed_too_many for run in report.runs):
        yield _given_up(report)
    elif status == "ok":
        yield "proved", _proved(report), status
    else:
        yield *_PROOF[status], status
    failed = sum(run.error is not None for run in report.runs)
    amount = f"{whole(len(report.runs))} of {whole(max(report.planned, len(report.runs)))}"
    errors = f", {whole(failed)} with errors" if failed else ""
    if report.published is not None:
        yield whole(len(report.runs) - failed), "cases published", ""
    else:
        yield amount, f"cases measured{errors}", "failed" * bool(failed)
    if sync := report.environment.sync:
        yield f"{format_ms(sync.overwrite_p50_ns)} ms", f"one {sync.primitive} (p50)", ""


def _proved(report: Report) -> str:
    """Return what is known of the data, of each experiment that knows something else of it."""
    proved = [run for run in report.runs if run.verdict.status == "ok"]
    return "; ".join(dict.fromkeys(face_of(run.case).show().proves for run in proved))


def _given_up(report: Report) -> Tile:
    """Return that the data is right, and that more was given up than may be."""
    worst = max(report.runs, key=Run.failed_share)
    return f"{percent(worst.failed_share())} failed", f"of what was done: {_proved(report)}", "failed"


_GIB = 1 << 30
_UNKNOWN = "unknown"
_LONGEST_COMMAND = 4000


def environment(surroundings: Environment, told: Collection[str] = ()) -> str:
    """Return the environment as a list of terms, and its warnings but for those that were told above."""
    terms = [
        element("div", element("dt", text(name)), element("dd", text(value)))
        for name, value in _facts(surroundings)
        if value
    ]
    ordered = sorted(surroundings.warnings, key=lambda warning: not warning.serious)
    warnings = [
        element("p", sentence(warning.text), class_="warning" if warning.serious else "remark")
        for warning in ordered
        if warning.text not in told
    ]
    return element("dl", *terms) + element(
        "div", *warnings, class_="said two" if len(warnings) > 1 else "said"
    )


def _facts(surroundings: Environment) -> Iterator[tuple[str, str]]:
    host, mounted = surroundings.host, surroundings.file_system
    yield "System", f"{host.system} {host.release}, {host.machine}".strip(" ,") or _UNKNOWN
    yield "Processor", host.processor
    yield "Cores", "" if host.cores is None else whole(host.cores)
    yield "Memory", "" if host.memory_bytes is None else f"{rounded(host.memory_bytes / _GIB)} GiB"
    yield "Python", host.python
    if host.sleep_1ms_ns is not None:
        yield "A sleep of 1 ms", f"{format_ms(host.sleep_1ms_ns)} ms"
    yield "File system", f"{mounted.kind} on {mounted.device}" if mounted.device else mounted.kind
    yield "Mount options", mounted.options.replace(",", ", ")
    if surroundings.sync:
        yield from _sync(surroundings.sync)
    for build in surroundings.builds:
        yield from _build(build)


def _sync(cost: SyncCost) -> Iterator[tuple[str, str]]:
    kinds = {
        "Write and sync, at the end": (cost.append_p50_ns, cost.append_p99_ns),
        "Write and sync, over a block": (cost.overwrite_p50_ns, cost.overwrite_p99_ns),
    }
    for name, (p50, p99) in kinds.items():
        yield name, f"{cost.primitive}: p50 {format_ms(p50)} ms, p99 {format_ms(p99)} ms"


def _build(build: SqliteBuild) -> Iterator[tuple[str, str]]:
    yield f"{build.library} of {build.driver}", f"{build.version} ({build.driver} {build.driver_version})"
    yield "Built from", build.source_id
    if build.memory_gets_per_s is not None:
        yield "Gets a second from memory", format_count(build.memory_gets_per_s)
    yield "Compile options", telling(build.compile_options)


def command(report: Report) -> str:
    """Return the command that measures it again, to be copied; nothing where there was none."""
    if not report.command:
        return ""
    line = shlex.join(map(visible, report.command))[:_LONGEST_COMMAND]
    # No line breaks within a word, such as after a hyphen.
    words = (element("span", escape(word)) for word in line.split(" "))
    seeds = {run.case.seed for run in report.runs}
    given = any(word.partition("=")[0] == "--seed" for word in report.command)
    known = report.published is None and len(seeds) == 1 and not given
    seed = f"It drew a seed of its own: add --seed {seeds.pop()} for the same keys." if known else ""
    button = element("button", "Copy", type="button", class_="copy", hidden=True)
    return element(
        "div", element("pre", element("code", " ".join(words)), tabindex="0"), button, class_="command"
    ) + (element("p", sentence(seed), class_="remark") if seed else "")
