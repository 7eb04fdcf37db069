"""What stands at the top of a page and at its end: the main figures, the environment, the command."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from html import escape

from sqlstress.analysis.comparison.remarks import TELLING
from sqlstress.analysis.crash import parts
from sqlstress.analysis.finding import PROVED, UNPROVED, WRONG
from sqlstress.analysis.rate import counted, rate_of
from sqlstress.analysis.wording import place, rounded, whole
from sqlstress.gate import FAIL, INCONCLUSIVE, PASS, UNDECIDED
from sqlstress.render.clean import visible
from sqlstress.render.page.markup import element, sentence, text
from sqlstress.report import AbTest, Environment, Report, SqliteBuild, SyncCost
from sqlstress.units import format_count, format_ms

_GIB = 1 << 30
_UNKNOWN = "unknown"
_PROOF = {
    "ok": ("proved", "no acknowledged write was lost"),
    "failed": ("FAILED", "the data is wrong"),
    "unknown": ("undecided", "whether the data is right"),
    "skipped": ("unproved", "nothing was checked"),
}
_VERDICTS = {FAIL: "FAIL", PASS: "pass", INCONCLUSIVE: "inconclusive", UNDECIDED: "undecided"}
_CRASH = {PROVED: "nothing lost", UNPROVED: "unproved", WRONG: "FAILED"}
_LONGEST_COMMAND = 4000


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


def _tiles(report: Report) -> Iterator[tuple[str, str, str]]:
    """Yield a figure, what it is, and how it stands."""
    if report.crash:
        yield from _crash(report)
        return
    yield from _gate(report.ab) if report.ab else _best(report)
    yield from _trust(report)


def _gate(test: AbTest) -> Iterator[tuple[str, str, str]]:
    yield _VERDICTS.get(test.verdict, "undecided"), "B beside A", "failed" * (test.verdict == FAIL)


def _crash(report: Report) -> Iterator[tuple[str, str, str]]:
    for part in parts(report):
        yield _CRASH[part.verdict.code], part.name, "failed" * (part.verdict.code == WRONG)
    if report.crash and (kills := report.crash.kills):
        yield whole(kills.kills), "writers killed", ""
        yield whole(kills.acknowledged), "transactions acknowledged before", ""
    if report.crash and (loss := report.crash.power):
        yield whole(loss.checked), "images of the disk", ""


def _best(report: Report) -> Iterator[tuple[str, str, str]]:
    """Yield the highest rate of the report's first experiment: those of others count something else."""
    found = [(rate, run) for run in report.runs if (rate := rate_of(run))]
    own = [one for one in found if counted(one[1].case) == counted(found[0][1].case)]
    if own:
        rate, best = max(own, key=lambda one: one[0])
        yield rounded(rate), f"{counted(best.case)} a second at most: {place(best.case)}", ""


def _trust(report: Report) -> Iterator[tuple[str, str, str]]:
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


def environment(surroundings: Environment) -> str:
    """Return the environment as a list of terms, and its warnings."""
    terms = [
        element("div", element("dt", text(name)), element("dd", text(value)))
        for name, value in _facts(surroundings)
        if value
    ]
    ordered = sorted(surroundings.warnings, key=lambda warning: not warning.serious)
    warnings = [
        element("p", sentence(warning.text), class_="warning" if warning.serious else "remark")
        for warning in ordered
    ]
    return element("dl", *terms) + "\n".join(warnings)


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
    yield f"SQLite of {build.driver}", f"{build.version} ({build.driver} {build.driver_version})"
    yield "Built from", build.source_id
    if build.memory_gets_per_s is not None:
        yield "Gets a second from memory", format_count(build.memory_gets_per_s)
    telling = [option for option in build.compile_options if option.partition("=")[0] in TELLING]
    yield "Compile options", ", ".join(telling)


def command(report: Report) -> str:
    """Return the command that measures it again, to be copied; nothing where there was none."""
    if not report.command:
        return ""
    line = shlex.join(map(visible, report.command))[:_LONGEST_COMMAND]
    seeds = {run.case.seed for run in report.runs}
    given = any(word.partition("=")[0] == "--seed" for word in report.command)
    known = report.published is None and len(seeds) == 1 and not given
    seed = f"It drew a seed of its own: add --seed {seeds.pop()} for the same keys." if known else ""
    button = element("button", "Copy", type="button", class_="copy", hidden=True)
    return element(
        "div", element("pre", element("code", escape(line)), tabindex="0"), button, class_="command"
    ) + (element("p", sentence(seed), class_="remark") if seed else "")
