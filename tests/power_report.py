"""Tests of power cuts made by hand."""

from __future__ import annotations

from dataclasses import replace

from sqlstress.experiments.power_loss.experiment import PowerCuts, PowerLoss
from sqlstress.report import Report
from sqlstress.report.case import JOURNAL_MODES, SYNCHRONOUS, Case, Settings
from tests.example_report import example_report

EXAMPLE = example_report()
CASE = Case(
    workload="power-loss",
    driver="apsw",
    concurrency=3,
    duration_s=0.0,
    warmup_s=0.0,
    seed=7,
    verify="full",
    settings=Settings(wal_autocheckpoint=20, busy_timeout_ms=0),
)
SYNCS = {"off": 0, "normal": 140, "full": 240, "extra": 241}
KINDS = {
    ("wal", "normal"): (1500, 500, 0, 0, 5),
    ("delete", "full"): (1400, 600, 0, 0, 1),
    ("truncate", "normal"): (1500, 400, 60, 40, 1),
}
"""Images that were good, lost, torn and corrupt, and the most lost; of what is not here, below."""
BAD = (700, 200, 300, 800, 21)


def power_cuts(journal_mode: str = "wal", synchronous: str = "full", images: int = 2000) -> PowerCuts:
    """Return what was found of a configuration, as it was once."""
    has_journal = journal_mode not in ("memory", "off") and synchronous in ("full", "extra")
    counts = KINDS.get((journal_mode, synchronous), (images, 0, 0, 0, 0) if has_journal else BAD)
    good, lost, torn, corrupt, most_lost = counts
    found = {"lost": lost, "torn": torn, "corrupt": corrupt}
    return PowerCuts(
        replace(CASE, settings=replace(CASE.settings, journal_mode=journal_mode, synchronous=synchronous)),
        transactions=100,
        operations=2606,
        syncs=SYNCS[synchronous],
        images=images,
        good=good,
        lost=lost,
        torn=torn,
        corrupt=corrupt,
        most_lost=most_lost,
        counterexamples=tuple(
            f"{kind}: cut after operation 119, sectors of 4096 bytes, 12 of 13 unsynced effects kept (all "
            "but one): kv.db: transaction 2 was acknowledged and is gone"
            for kind, count in found.items()
            if count
        ),
        effective={"journal_mode": journal_mode, "synchronous": synchronous, "fullfsync": "0"},
    )


CONTROL = power_cuts("memory", "full")


def power_loss(*configurations: PowerCuts) -> PowerLoss:
    """Return a test of these configurations; of all of them when none is named."""
    every = tuple(power_cuts(mode, level) for mode in JOURNAL_MODES for level in SYNCHRONOUS)
    return PowerLoss(
        images=2000,
        planned=len(configurations or every),
        matrix=not configurations,
        control=CONTROL,
        configurations=configurations or every,
        seconds=31.25,
    )


def power_report(loss: PowerLoss, *, interrupted: bool = False) -> Report:
    """Return the report of a test of power cuts."""
    return replace(
        EXAMPLE,
        runs=(),
        planned=0,
        results={"power-loss": loss},
        interrupted=interrupted,
        command=("sqlstress", "crash", "--matrix"),
    )
