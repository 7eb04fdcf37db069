"""How a crash test by killing is shown: what was done, a row of what was found, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sqlstress.analysis.durability import describe_durability
from sqlstress.analysis.finding import PROVED, UNPROVED, WRONG, Finding, Part
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import files, listing, plural, rounded, whole
from sqlstress.experiments.crash.spec import ACKNOWLEDGED, INTEGRITY, SURVIVORS, WHOLE, Kills
from sqlstress.report import Check, Report, Run
from sqlstress.show import heading
from sqlstress.show.blocks import FAILED, MISSING, Block, Bullets, Column, Legend, Lines, Table, Verdict
from sqlstress.show.phrases import phrase
from sqlstress.show.shown import ResultShown, Tile, came_of


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
        table = Table(COLUMNS, (_row(result),), leaving=LEAVING)
        yield table
        yield Legend(table, partial(_legend, result))
        yield Verdict(phrase(kill_verdict(result)))
        if told := tuple(phrase(finding) for finding in findings(result)):
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


_MEANINGS = {
    "finished": "finished: transactions under way at the kill that were there afterwards",
    "undone": "undone: those that were not",
    "recovered files": "recovered: WALs and hot journals left to the next process that opens the files",
}
"""Column → what it is."""


def _legend(kills: Kills, table: Table) -> Iterator[str]:
    """Yield what the columns mean, and what was struck."""
    meanings = [text for name, text in _MEANINGS.items() if name in table.headers]
    told = [f"It took {rounded(kills.seconds)} s"]
    if kills.alone:
        told.append(f"in {plural(kills.alone, 'round')} one writer died before the others, who had to go on")
    if kills.opening:
        told.append(f"{plural(kills.opening, 'kill')} struck a writer that opened or recovered the files")
    if kills.checkpoints:
        told.append(f"{plural(kills.checkpoints, 'checkpoint')} were cut off")
    yield ". ".join("; ".join(part) for part in (meanings, told) if part)


LIMITS = (
    "That is about processes that die, and says nothing about power loss: what a dead process has written "
    "the system still writes out, even with synchronous=OFF. --power tries what a power cut can leave."
)
_NO_JOURNAL = "journal_mode={} keeps nothing on disk to roll back with: use WAL or DELETE."
_SHOWN = 3


def kill_verdict(kills: Kills) -> Finding:
    """Return in a sentence or two whether everything survived the death of its writers."""
    if kills.verdict.status == "failed":
        wrong = listing([_wrong(check) for check in kills.verdict.checks if check.status == "failed"])
        return Finding(WRONG, f"FAILED: after {plural(kills.kills, 'kill')} {wrong}.{_advice(kills)}")
    if not kills.acknowledged:
        return Finding(UNPROVED, "Nothing is proved: no transaction was acknowledged before its writer died.")
    return Finding(
        PROVED,
        f"Nothing was lost: after {plural(kills.kills, 'kill')} all of {whole(kills.acknowledged)} "
        "acknowledged transactions were there, none was torn, and integrity_check found nothing. "
        f"{LIMITS}",
    )


def _wrong(check: Check) -> str:
    """Return what a failed check has found, as a clause."""
    times = "once" if check.problems == 1 else f"{whole(check.problems)} times"
    were = "was" if check.problems == 1 else "were"
    return {
        ACKNOWLEDGED: f"{plural(check.problems, 'transaction')} {were} not there as acknowledged",
        WHOLE: f"{plural(check.problems, 'record')} {were} not wholly as the log says",
        INTEGRITY: f"integrity_check complained {times}",
        SURVIVORS: f"{times} the others did not go on after a kill",
    }.get(check.name, f"{check.name} failed")


def _advice(kills: Kills) -> str:
    mode = kills.case.settings.journal_mode
    return f" {_NO_JOURNAL.format(mode.upper())}" if mode in ("off", "memory") else ""


def findings(kills: Kills) -> Iterator[Finding]:
    """Yield what must be known beside the verdict: counter-examples, and why a test ended early."""
    for check in kills.verdict.checks:
        if check.status == "failed":
            yield Finding("counterexamples", f"{check.name}: {'; '.join(check.counterexamples[:_SHOWN])}.")
    if kills.error:
        yield Finding("ended-early", f"Ended after {rounds(kills)}: {kills.error.removesuffix('.')}.")


def rounds(kills: Kills) -> str:
    """Return how far a test has come: "3 of 100 rounds"."""
    return f"{whole(kills.rounds)} of {whole(kills.planned)} rounds"
