"""How power cuts are shown: what was tried, a row for each configuration, and what to use."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.part import Part
from sqlstress.analysis.wording import whole
from sqlstress.display.blocks import Block
from sqlstress.display.shown import ResultShown
from sqlstress.display.tile import Tile, came_of
from sqlstress.experiments.power_loss.result import PowerLoss
from sqlstress.experiments.power_loss.shown.findings import name, power_progress, power_verdict, safest
from sqlstress.experiments.power_loss.shown.view import power_blocks
from sqlstress.report import Report


class PowerLossShown(ResultShown[PowerLoss]):
    """Power cuts, in one configuration or more."""

    def part(self, result: PowerLoss) -> Part:
        return Part("power cuts", power_verdict(result), result.seconds, result.error, "crash")

    def result_blocks(self, report: Report, result: PowerLoss) -> Iterator[Block]:
        return power_blocks(report, result)

    def tiles(self, result: PowerLoss) -> Iterator[Tile]:
        # In a matrix there are configurations that must lose something.
        proved = "as expected" if result.matrix else "nothing lost"
        yield came_of(power_verdict(result), proved, "power cuts")
        if least := safest(result):
            yield name(least), "lost nothing, with the fewest syncs", ""
        yield whole(result.checked), "images of the disk", ""

    def progress(self, result: PowerLoss) -> str:
        return power_progress(result)
