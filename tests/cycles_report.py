"""A report of the experiment with cycles made by hand: the published settings, figures easy to follow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sqlstress.experiments.classics.spec import Cycling
from sqlstress.report import Check, Latency, Report, Run, Trial, Verdict
from sqlstress.report.case import Case, Settings
from sqlstress.statistics.series import CHECKPOINTED_FRAMES, WAL_FRAMES, WAL_RESTARTS, Series
from sqlstress.statistics.units import NS_PER_MS
from tests.example_report import corpus_report, example_report

EXAMPLE = example_report()
CYCLES = 100
OK = Verdict((Check("quick_check", "ok", 1), Check("last commit", "ok", 1)))


def series_of(
    name: str, values: Iterable[float], worker: int = 1, unit: str = "ns", scale: float = 1
) -> Series:
    return Series(name, unit, tuple(int(value * scale) for value in values), worker=worker)


def in_ms(name: str, values: Iterable[float], worker: int = 1) -> Series:
    """Return a series of times that are given in ms."""
    return series_of(name, values, worker, scale=NS_PER_MS)


def wal(frames: Sequence[int], checkpointed: Sequence[int], restarts: Sequence[int]) -> tuple[Series, ...]:
    figures = ((WAL_FRAMES, frames), (CHECKPOINTED_FRAMES, checkpointed), (WAL_RESTARTS, restarts))
    return tuple(series_of(name, values, unit="frames") for name, values in figures)


def one(ns: float) -> Latency:
    """Return the latency of a kind of which there was one operation."""
    return Latency(1, ns, ns, ns, None, int(ns))


def trial(*series: Series, autocheckpoint: str = "1000", **fields: Any) -> Trial:
    """Return a trial that all is well with."""
    journal = "wal" if any(each.name == WAL_FRAMES for each in series) else "delete"
    effective = {
        "journal_mode": journal,
        "synchronous": "full",
        "fullfsync": "0",
        "wal_autocheckpoint": autocheckpoint,
        "page_size": "4096",
    }
    calm = replace(EXAMPLE.runs[0].trials[0], latency={}, verdict=OK, effective=effective, half_ratio=None)
    return replace(calm, series=series, fairness=1.0, **fields)


def run(journal: str, transaction: str, *trials: Trial, off: bool = False, **fields: Any) -> Run:
    """Return a run of a setting."""
    case = Case(
        workload="cycles",
        duration_s=0.0,
        warmup_s=0.0,
        seed=7,
        settings=Settings(journal, "full", wal_autocheckpoint=0 if off else None),
        spec=Cycling(CYCLES, 5, transaction, 60.0),
    )
    return Run(replace(case, **fields), trials)


def spiked(usual: float, first: float, spikes: dict[int, float]) -> list[float]:
    """Return the times of the cycles: the first one's, and of some that stand out."""
    return [{1: first, **spikes}.get(cycle, usual) for cycle in range(1, CYCLES + 1)]


NO_FRAMES = [0] * CYCLES
ROW_BY_ROW = wal(
    [11 * cycle if cycle < 91 else 11 * (cycle - 91) + 1 for cycle in range(1, CYCLES + 1)],
    NO_FRAMES,
    [int(cycle >= 91) for cycle in range(1, CYCLES + 1)],
)
"""Frames of the commits 1 to 1100: the checkpoint follows the thousandth."""


def published_settings() -> tuple[Run, ...]:
    """Return the five settings of the corpus, the first of them given up."""
    return corpus_report("cycles").runs


def cycles_report(*runs: Run) -> Report:
    """Return a report of these runs, or of the published settings."""
    runs = runs or published_settings()
    return replace(EXAMPLE, runs=runs, planned=len(runs), interrupted=False)
