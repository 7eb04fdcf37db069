"""How power cuts are shown: what was tried, a row for each configuration, and what to use."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.durability import describe_waits
from sqlstress.analysis.finding import Part
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import files, plural, rounded, whole
from sqlstress.display import heading
from sqlstress.display.blocks import DETAIL, NAME, Block, Bullets, Column, Lines, Paragraph, Table, Verdict
from sqlstress.display.phrases import phrase
from sqlstress.display.shown import ResultShown, Tile, came_of
from sqlstress.experiments.power_loss.result import PowerCuts, PowerLoss
from sqlstress.experiments.power_loss.shown.findings import (
    has_lost,
    name,
    power_findings,
    power_progress,
    power_verdict,
    safest,
    syncs_each,
)
from sqlstress.report import Report, Run


class PowerLossShown(ResultShown[PowerLoss]):
    """Power cuts, in one configuration or more."""

    def part(self, result: PowerLoss) -> Part:
        return Part("power cuts", power_verdict(result), result.seconds, result.error, "crash")

    def result_blocks(self, report: Report, result: PowerLoss) -> Iterator[Block]:
        if result.configurations:
            cuts = result.configurations[0]
            group = Group(cuts.case, (Run(cuts.case),))
            about = [heading.describe(_what(result, cuts), group, report)]
            if cuts.effective and not result.matrix:
                about.append(describe_waits(cuts.effective, report.environment.sync))
            yield Lines(tuple(about))
            yield Table(COLUMNS, tuple(map(_row, result.configurations)), leaving=LEAVING)
            yield Paragraph(f"{LEGEND} It took {rounded(result.seconds)} s.")
        yield Verdict(phrase(power_verdict(result)))
        if told := tuple(phrase(finding) for finding in power_findings(result)):
            yield Bullets(told)

    def tiles(self, result: PowerLoss) -> Iterator[Tile]:
        value, what, kind = came_of(power_verdict(result), "nothing lost", "power cuts")
        documented = kind == "ok" and has_lost(result)
        yield ("as documented", "what power cuts took", "") if documented else (value, what, kind)
        if least := safest(result):
            yield name(least), "lost nothing, with the fewest syncs", ""
        yield whole(result.checked), "images of the disk", ""

    def progress(self, result: PowerLoss) -> str:
        return power_progress(result)


COLUMNS = (
    Column("journal mode", ("journal", "mode"), "left", NAME),
    Column("synchronous", ("synchro-", "nous"), "left", NAME),
    Column("syncs/transaction", ("syncs/", "trans."), role=DETAIL),
    Column("images", ("", "images"), role=DETAIL),
    Column("good", ("", "good")),
    Column("lost", ("", "lost")),
    Column("torn", ("", "torn")),
    Column("corrupt", ("", "corrupt")),
    Column("most lost", ("most", "lost")),
)
LEAVING = ("syncs/transaction", "good", "most lost")
LEGEND = (
    "good: every acknowledged transaction is there, none in parts; lost: the files are as they were at an "
    'earlier moment, by as many acknowledged transactions as stand under "most lost"; torn: as they '
    "were at no moment; corrupt: SQLite or integrity_check complains. syncs/transaction: of files and "
    "folders, checkpoints and all. The counts are this model's: how much a real cut takes depends on when "
    "your load checkpoints and your system writes back."
)


def _what(loss: PowerLoss, cuts: PowerCuts) -> str:
    case = cuts.case
    sector = "may hold anything" if loss.spoils else "is the old or the new"
    told = "" if loss.told_powersafe else ", as SQLite was told (psow=0)"
    return (
        f"Power cuts. {plural(cuts.transactions, 'transaction')} on {files(case.buckets)}, "
        f"{plural(case.concurrency, 'connection')} each; a sector written at the cut {sector}{told}"
    )


def _row(cuts: PowerCuts) -> tuple[str, ...]:
    counts = (cuts.images, cuts.good, cuts.lost, cuts.torn, cuts.corrupt, cuts.most_lost)
    settings = cuts.case.settings
    return (
        settings.journal_mode.upper(),
        (settings.synchronous or "default").upper(),
        _tenths(syncs_each(cuts)),
        *map(whole, counts),
    )


def _tenths(number: float) -> str:
    return f"{number:.1f}" if abs(number) < 100 else rounded(number, 2)
