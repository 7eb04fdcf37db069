"""How a crash test by killing is shown: what was done, a row of what was found, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.durability import describe_durability
from sqlstress.analysis.finding import Part
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import files, plural, rounded, whole
from sqlstress.display import heading
from sqlstress.display.blocks import Block, Bullets, Column, Lines, Paragraph, Table, Verdict
from sqlstress.display.figures import FAILED, MISSING
from sqlstress.display.shown import ResultShown, Tile, came_of
from sqlstress.experiments.crash.result import INTEGRITY, Kills
from sqlstress.experiments.crash.shown.findings import findings, kill_verdict, rounds
from sqlstress.report import Report, Run


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
        yield Table(COLUMNS, (_row(result),), leaving=LEAVING)
        yield Paragraph(_legend(result))
        yield Verdict(kill_verdict(result).text)
        if told := tuple(finding.text for finding in findings(result)):
            yield Bullets(told)

    def tiles(self, result: Kills) -> Iterator[Tile]:
        yield came_of(kill_verdict(result), "nothing lost", "process death")
        yield whole(result.kills), "writers killed", ""
        yield whole(result.acknowledged), "transactions acknowledged before", ""

    def progress(self, result: Kills) -> str:
        return rounds(result)


COLUMNS = (
    Column("rounds", ("", "rounds")),
    Column("kills", ("", "kills")),
    Column("acknowledged transactions", ("acknow-", "ledged")),
    Column("finished", ("fin-", "ished")),
    Column("undone", ("", "undone")),
    Column("recovered files", ("reco-", "vered")),
    Column("lost", ("", "lost")),
    Column("torn", ("", "torn")),
    Column("integrity", ("integ-", "rity"), align="left"),
)
LEAVING = ("recovered files", "undone", "finished")


def _what(kills: Kills) -> str:
    case, load = kills.case, kills.case.spec
    return (
        f"Process death. {plural(case.concurrency, 'writer')} on {files(case.buckets)}, killed at random "
        f"moments; transactions of {plural(load.batch + 1, 'row')}, {whole(load.value_size)}-byte values, "
        f"BEGIN {load.begin.upper()}"
    )


def _row(kills: Kills) -> tuple[str, ...]:
    counts = (
        kills.rounds,
        kills.kills,
        kills.acknowledged,
        kills.finished,
        kills.undone,
        kills.wals + kills.hot_journals,
        kills.lost,
        kills.torn,
    )
    return (*map(_cell, counts), _integrity(kills))


def _cell(count: int) -> str:
    return whole(count) if abs(count) < 10_000_000 else f"{count:.0e}"


def _integrity(kills: Kills) -> str:
    statuses = {check.status for check in kills.verdict.checks if check.name == INTEGRITY}
    return FAILED if "failed" in statuses else "ok" if statuses else MISSING


def _legend(kills: Kills) -> str:
    """Return what the columns mean, and what was struck."""
    told = [f"It took {rounded(kills.seconds)} s"]
    if kills.alone:
        told.append(f"in {plural(kills.alone, 'round')} one writer died before the others, who had to go on")
    if kills.opening:
        told.append(f"{plural(kills.opening, 'kill')} struck a writer that opened or recovered the files")
    if kills.checkpoints:
        told.append(f"{plural(kills.checkpoints, 'checkpoint')} were cut off")
    return (
        "finished and undone: transactions under way at the kill that were there afterwards, or not; "
        f"recovered: WALs and hot journals left to whoever opened the files next. {'; '.join(told)}."
    )
