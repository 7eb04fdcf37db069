"""Presentation of a crash test: heading, a row of figures, verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from sqlstress.analysis.durability import describe_durability
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.study_parts import (
    PROVED,
    UNPROVED,
    WRONG,
    Conclusion,
    ReportPart,
    counterexamples,
    ended_early,
)
from sqlstress.analysis.wording import buckets
from sqlstress.experiments.crash import sentences
from sqlstress.experiments.crash.spec import ACKNOWLEDGED, INTEGRITY, SURVIVORS, WHOLE, Kills
from sqlstress.report import Check, Report, Run
from sqlstress.show import heading
from sqlstress.show.blocks import (
    FAILED,
    MISSING,
    Block,
    Bullets,
    Column,
    Legend,
    Lines,
    Table,
    VerdictLine,
    meanings,
    table_of,
)
from sqlstress.show.shown import ResultShown, Tile, verdict_tile
from sqlstress.statistics.units import digits, plural, rounded


class KillsShown(ResultShown[Kills]):
    """Presenter (table, verdict) of a crash test."""

    def part(self, result: Kills) -> ReportPart:
        return ReportPart("process death", kill_verdict(result), result.seconds, result.error, "crash")

    def result_blocks(self, report: Report, result: Kills) -> Iterator[Block]:
        group = Group(result.case, (Run(result.case),))
        about = [heading.describe(_heading(result), group, report)]
        if result.effective:
            about.append(describe_durability(result.effective, report.environment.sync))
        yield Lines((*about, *heading.warnings(group, report.environment, ())))
        table = table_of([result], COLUMNS)
        yield table
        yield Legend(table, partial(_legend, result))
        yield VerdictLine(kill_verdict(result).finding.text)
        if texts := tuple(finding.text for finding in findings(result)):
            yield Bullets(texts)

    def tiles(self, result: Kills) -> Iterator[Tile]:
        yield verdict_tile(kill_verdict(result), "nothing lost", "process death")
        yield digits(result.kills), "writers killed", ""
        yield digits(result.acknowledged), "transactions acknowledged before", ""

    def progress(self, result: Kills) -> str:
        return rounds(result)


def _count(name: str, count: Callable[[Kills], int], **more: Any) -> Column[Kills]:
    def cell(kills: Kills) -> str:
        value = count(kills)
        return digits(value) if abs(value) < 10_000_000 else f"{value:.0e}"

    return Column(name, cell=cell, **more)


def _integrity(kills: Kills) -> str:
    statuses = {check.status for check in kills.verdict.checks if check.name == INTEGRITY}
    return FAILED if "failed" in statuses else "ok" if statuses else MISSING


COLUMNS: tuple[Column[Kills], ...] = (
    _count("rounds", lambda kills: kills.rounds),
    _count("kills", lambda kills: kills.kills),
    _count("acknowledged transactions", lambda kills: kills.acknowledged, heading=("", "acknowledged")),
    _count(
        "finished",
        lambda kills: kills.finished,
        meaning="finished: transactions in progress at the kill that were there afterwards",
        leaves=30,
    ),
    _count(
        "undone",
        lambda kills: kills.undone,
        meaning="undone: transactions in progress that were not",
        leaves=20,
    ),
    _count(
        "recovered files",
        lambda kills: kills.wals + kills.hot_journals,
        heading=("recovered", "files"),
        meaning="recovered: WALs and hot journals left for the next process to recover",
        leaves=10,
    ),
    _count("lost", lambda kills: kills.lost_count),
    _count("torn", lambda kills: kills.torn_count),
    Column("integrity", align="left", cell=_integrity),
)


def _heading(kills: Kills) -> str:
    case, load = kills.case, kills.case.spec
    return (
        f"Process death. {plural(case.concurrency, 'writer')} on {buckets(case.buckets)}, killed at random "
        f"moments; transactions of {plural(load.batch + 1, 'row')}, {digits(load.value_size)}-byte values, "
        f"BEGIN {load.begin.upper()}"
    )


def _legend(kills: Kills, table: Table) -> Iterator[str]:
    remarks = [f"It took {rounded(kills.seconds)} s"]
    if kills.alone:
        remarks.append(
            f"in {plural(kills.alone, 'round')} one writer died before the others, which had to continue"
        )
    if kills.opening:
        remarks.append(
            f"{plural(kills.opening, 'kill')} hit a writer that was opening or recovering the files"
        )
    if kills.checkpoints:
        remarks.append(f"the kills interrupted {plural(kills.checkpoints, 'checkpoint')}")
    yield ". ".join("; ".join(part) for part in ([*meanings(table)], remarks) if part)


def kill_verdict(kills: Kills) -> Conclusion:
    """Return the verdict: whether all acknowledged transactions survived."""
    if kills.verdict.status == "failed":
        wrong = tuple(_failure_text(check) for check in kills.verdict.checks if check.status == "failed")
        mode = kills.case.settings.journal_mode
        mode_without_rollback = mode.upper() if mode in ("off", "memory") else None
        finding = Finding(
            sentences.kills_wrong, kills=kills.kills, wrong=wrong, keeps_nothing=mode_without_rollback
        )
        return Conclusion(WRONG, finding)
    if not kills.acknowledged:
        return Conclusion(UNPROVED, Finding(sentences.kills_unproved))
    return Conclusion(
        PROVED, Finding(sentences.kills_proved, kills=kills.kills, acknowledged=kills.acknowledged)
    )


def _failure_text(check: Check) -> str:
    times = "once" if check.problems == 1 else f"{digits(check.problems)} times"
    results = {
        ACKNOWLEDGED: f"{plural(check.problems, 'transaction')} did not match what was acknowledged",
        WHOLE: f"{plural(check.problems, 'record')} did not match the log",
        INTEGRITY: f"integrity_check reported errors {times}",
        SURVIVORS: f"{times} the other writers did not continue after a kill",
    }
    return results.get(check.name, f"{check.name} failed")


def findings(kills: Kills) -> Iterator[Finding]:
    """Yield findings after the verdict: counter-examples, reason for an early end."""
    yield from counterexamples(kills.verdict)
    yield from ended_early(kills.error, rounds(kills))


def rounds(kills: Kills) -> str:
    """Return text such as "3 of 100 rounds"."""
    return f"{digits(kills.rounds)} of {plural(kills.planned, 'round')}"
