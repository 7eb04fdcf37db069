"""How a crash test by killing is shown: what was done, a row of what was found, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from sqlstress.analysis.durability import describe_durability
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.study_parts import (
    PROVED,
    UNPROVED,
    WRONG,
    Conclusion,
    Part,
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
    Verdict,
    meanings,
    table_of,
)
from sqlstress.show.shown import ResultShown, Tile, came_of
from sqlstress.statistics.units import plural, rounded, whole


class KillsShown(ResultShown[Kills]):
    """Process death."""

    def part(self, result: Kills) -> Part:
        return Part("process death", kill_verdict(result), result.seconds, result.error, "crash")

    def result_blocks(self, report: Report, result: Kills) -> Iterator[Block]:
        group = Group(result.case, (Run(result.case),))
        about = [heading.describe(_what(result), group, report)]
        if result.effective:
            about.append(describe_durability(result.effective, report.environment.sync))
        yield Lines((*about, *heading.warnings(group, report.environment, ())))
        table = table_of([result], COLUMNS)
        yield table
        yield Legend(table, partial(_legend, result))
        yield Verdict(kill_verdict(result).finding.text)
        if told := tuple(finding.text for finding in findings(result)):
            yield Bullets(told)

    def tiles(self, result: Kills) -> Iterator[Tile]:
        yield came_of(kill_verdict(result), "nothing lost", "process death")
        yield whole(result.kills), "writers killed", ""
        yield whole(result.acknowledged), "transactions acknowledged before", ""

    def progress(self, result: Kills) -> str:
        return rounds(result)


def _count(figure: Callable[[Kills], int]) -> Callable[[Kills], str]:
    """Return the cell of a count."""

    def cell(kills: Kills) -> str:
        count = figure(kills)
        return whole(count) if abs(count) < 10_000_000 else f"{count:.0e}"

    return cell


def _integrity(kills: Kills) -> str:
    statuses = {check.status for check in kills.verdict.checks if check.name == INTEGRITY}
    return FAILED if "failed" in statuses else "ok" if statuses else MISSING


COLUMNS: tuple[Column[Kills], ...] = (
    Column("rounds", cell=_count(lambda kills: kills.rounds)),
    Column("kills", cell=_count(lambda kills: kills.kills)),
    Column(
        "acknowledged transactions",
        ("", "acknowledged"),
        cell=_count(lambda kills: kills.acknowledged),
    ),
    Column(
        "finished",
        cell=_count(lambda kills: kills.finished),
        meaning="finished: transactions in progress at the kill that were there afterwards",
        leaves=30,
    ),
    Column(
        "undone",
        cell=_count(lambda kills: kills.undone),
        meaning="undone: transactions in progress that were not",
        leaves=20,
    ),
    Column(
        "recovered files",
        ("recovered", "files"),
        cell=_count(lambda kills: kills.wals + kills.hot_journals),
        meaning="recovered: WALs and hot journals left for the next process to recover",
        leaves=10,
    ),
    Column("lost", cell=_count(lambda kills: kills.lost)),
    Column("torn", cell=_count(lambda kills: kills.torn)),
    Column("integrity", align="left", cell=_integrity),
)


def _what(kills: Kills) -> str:
    case, load = kills.case, kills.case.spec
    return (
        f"Process death. {plural(case.concurrency, 'writer')} on {buckets(case.buckets)}, killed at random "
        f"moments; transactions of {plural(load.batch + 1, 'row')}, {whole(load.value_size)}-byte values, "
        f"BEGIN {load.begin.upper()}"
    )


def _legend(kills: Kills, table: Table) -> Iterator[str]:
    """Yield what the columns mean, and what was struck."""
    told = [f"It took {rounded(kills.seconds)} s"]
    if kills.alone:
        told.append(
            f"in {plural(kills.alone, 'round')} one writer died before the others, which had to continue"
        )
    if kills.opening:
        told.append(f"{plural(kills.opening, 'kill')} hit a writer that was opening or recovering the files")
    if kills.checkpoints:
        told.append(f"the kills interrupted {plural(kills.checkpoints, 'checkpoint')}")
    yield ". ".join("; ".join(part) for part in ([*meanings(table)], told) if part)


def kill_verdict(kills: Kills) -> Conclusion:
    """Return whether everything survived the death of its writers."""
    if kills.verdict.status == "failed":
        wrong = tuple(_wrong(check) for check in kills.verdict.checks if check.status == "failed")
        mode = kills.case.settings.journal_mode
        nothing = mode.upper() if mode in ("off", "memory") else None
        finding = Finding(sentences.kills_wrong, kills=kills.kills, wrong=wrong, keeps_nothing=nothing)
        return Conclusion(WRONG, finding)
    if not kills.acknowledged:
        return Conclusion(UNPROVED, Finding(sentences.kills_unproved))
    return Conclusion(
        PROVED, Finding(sentences.kills_proved, kills=kills.kills, acknowledged=kills.acknowledged)
    )


def _wrong(check: Check) -> str:
    """Write the result of a failed check."""
    times = "once" if check.problems == 1 else f"{whole(check.problems)} times"
    results = {
        ACKNOWLEDGED: f"{plural(check.problems, 'transaction')} did not match what was acknowledged",
        WHOLE: f"{plural(check.problems, 'record')} did not match the log",
        INTEGRITY: f"integrity_check reported errors {times}",
        SURVIVORS: f"{times} the other writers did not continue after a kill",
    }
    return results.get(check.name, f"{check.name} failed")


def findings(kills: Kills) -> Iterator[Finding]:
    """Yield what must be known beside the verdict: counter-examples, and why a test ended early."""
    yield from counterexamples(kills.verdict)
    yield from ended_early(kills.error, rounds(kills))


def rounds(kills: Kills) -> str:
    """Return how far a test has come: "3 of 100 rounds"."""
    return f"{whole(kills.rounds)} of {plural(kills.planned, 'round')}"
