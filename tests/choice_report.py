"""Small reports of presets that were compared, and of a search for better settings, made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlstress.experiments.tune.experiment import (
    YOURS,
    MeasuredPreset,
    PresetComparison,
    TunedLevel,
    TunedRow,
    Tuning,
    catalogue,
)
from sqlstress.report import Report, Run, Trial
from sqlstress.report.case import Case, Settings
from sqlstress.report.study_results import Gain
from tests.example_report import example_report

EXAMPLE = example_report()
TRIAL = EXAMPLE.runs[6].trials[0]
CASE = Case(concurrency=4, duration_s=1.0, warmup_s=0.3, seed=7)
NORMAL = {**TRIAL.effective, "journal_mode": "wal", "synchronous": "normal"}


def slices(tps: float, count: int, effective: Mapping[str, str] = TRIAL.effective) -> tuple[Trial, ...]:
    """Return slices that did about so much a second."""
    return tuple(
        replace(TRIAL, index=number, tps=tps * (1 + number / 100), effective=dict(effective))
        for number in range(count)
    )


PRESETS = PresetComparison(
    CASE,
    YOURS,
    planned=3,
    rounds=3,
    presets=(
        MeasuredPreset(YOURS, effective=TRIAL.effective),
        *(
            MeasuredPreset(
                one.name, one.project, one.source, one.looked_up, one.words, one.apart, NORMAL, gain
            )
            for one, gain in (
                (catalogue()["rails"], Gain(4.12, 3.61, 4.7, 3)),
                (catalogue()["kine"], Gain(1.004, 0.962, 1.048, 3)),
                (catalogue()["django"], Gain(1.21, 0.87, 1.68, 3)),
            )
        ),
    ),
    max_time_s=1200.0,
    seconds=31.4,
)


def preset_report(found: PresetComparison = PRESETS) -> Report:
    """Return a report of presets."""
    case = replace(CASE, settings=Settings(synchronous="normal"))
    runs = tuple(
        Run(
            case if one.effective == NORMAL else CASE,
            slices(6000 * (one.gain or Gain(1, 1, 1, 3)).ratio, 3, one.effective),
            arm=one.name,
        )
        for one in found.presets
    )
    command = ("sqlstress", "presets", "--compare", "rails,kine,django")
    return replace(EXAMPLE, runs=runs, planned=len(runs), command=command, results={"presets": found})


GAIN = Gain(1.31, 1.22, 1.4, 12)
TUNING = Tuning(
    replace(CASE, settings=Settings(synchronous="normal")),
    ("checkpoints", "page-size", "busy"),
    180.0,
    levels=(
        TunedLevel("checkpoints", "10000", Gain(1.3, 1.12, 1.5, 48)),
        TunedLevel("checkpoints", "restart"),
        TunedLevel("page-size", "1024", Gain(1.02, 0.93, 1.12, 48)),
        TunedLevel("busy", "fair", Gain(0.81, 0.71, 0.93, 48)),
    ),
    designed=48,
    raced=(
        TunedRow(("10000", "1024", ""), 8, True, Gain(1.35, 1.2, 1.5, 8)),
        TunedRow(("10000", "", ""), 8, True, Gain(1.3, 1.17, 1.45, 8)),
        TunedRow(("", "", ""), 8),
        TunedRow(("10000", "1024", "fair"), 4, False, Gain(0.9, 0.7, 1.1, 4)),
    ),
    chosen=("--wal-autocheckpoint", "10000", "--page-size", "1024"),
    pragmas=("PRAGMA page_size = 1024", "PRAGMA wal_autocheckpoint = 10000"),
    gain=GAIN,
    refused=("--mmap-size 268435456: PRAGMA mmap_size: asked for 268435456, SQLite answers 0.",),
    seconds=178.2,
)


def tune_report(found: Tuning = TUNING) -> Report:
    """Return a report of a search."""
    settings = replace(found.case.settings, wal_autocheckpoint=10000, page_size=1024)
    better = replace(found.case, settings=settings)
    runs = tuple(
        Run(case, slices(tps, count, NORMAL), arm=stage)
        for stage, count in (("design", 2), ("race", 3), ("fresh", 4))
        for case, tps in ((found.case, 40_000.0), (better, 52_000.0))
    )
    command = ("sqlstress", "tune", "--synchronous", "normal")
    return replace(EXAMPLE, runs=runs, planned=len(runs), command=command, results={"tune": found})
