"""What every sub-command is given: the options, a folder for databases, and the tool."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.loops import Cell, Sample, run_loops
from benchmarks.tool import Tool, ToolCase

LOADS = {"get-only": 1.0, "50/50": 0.5, "replace-only": 0.0}
DRIVERS = ("apsw", "sqlite3")


@dataclass(frozen=True, slots=True)
class Scale:
    """What is large in the runs of `endurance`."""

    workers: int = 256
    buckets: int = 1_000
    keys: int = 10_000_000


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for; an empty choice leaves it to the sub-command."""

    repeats: int
    duration_s: float
    warmup_s: float
    seed: int
    drivers: tuple[str, ...] = DRIVERS
    loads: tuple[str, ...] = ()
    synchronous: tuple[str, ...] = ()
    concurrency: tuple[int, ...] = ()
    arms: tuple[str, ...] = ()
    scale: Scale = Scale()


@dataclass(frozen=True, slots=True)
class Bench:
    """Measures one arm at a time."""

    options: Options
    folder: Path
    tool: Tool

    def seed(self, index: int) -> int:
        """Return the seed of a round: the same for all its arms, with room for the workers' own."""
        return self.options.seed + index * 10_000

    def loops(self, command: list[str], cell: Cell, index: int) -> Sample:
        """Measure worker processes of a loop in a round."""
        return run_loops(command, cell, self.folder, self.seed(index))

    def cell(self, load: str, synchronous: str, concurrency: int) -> Cell:
        """Return a cell for `loops`, with the window that was asked for."""
        options = self.options
        return Cell(LOADS[load], synchronous, concurrency, options.duration_s, options.warmup_s)

    def case(self, driver: str, cell: Cell) -> ToolCase:
        """Return the same work for the tool."""
        return ToolCase(
            driver,
            cell.concurrency,
            cell.read_ratio,
            cell.synchronous,
            duration_s=cell.duration_s,
            warmup_s=cell.warmup_s,
        )
