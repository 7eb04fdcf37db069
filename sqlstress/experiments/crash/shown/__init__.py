"""How a crash test by killing is shown: what was done, a row of what was found, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.part import Part
from sqlstress.analysis.wording import whole
from sqlstress.display.blocks import Block
from sqlstress.display.shown import ResultShown
from sqlstress.display.tile import Tile, came_of
from sqlstress.experiments.crash.result import Kills
from sqlstress.experiments.crash.shown.findings import kill_verdict, rounds
from sqlstress.experiments.crash.shown.view import kill_blocks
from sqlstress.report import Report


class KillsShown(ResultShown[Kills]):
    """Process death."""

    def part(self, result: Kills) -> Part:
        return Part("process death", kill_verdict(result), result.seconds, result.error, "crash")

    def result_blocks(self, report: Report, result: Kills) -> Iterator[Block]:
        return kill_blocks(report, result)

    def tiles(self, result: Kills) -> Iterator[Tile]:
        yield came_of(kill_verdict(result), "nothing lost", "process death")
        yield whole(result.kills), "writers killed", ""
        yield whole(result.acknowledged), "transactions acknowledged before", ""

    def progress(self, result: Kills) -> str:
        return rounds(result)
