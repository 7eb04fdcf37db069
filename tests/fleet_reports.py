"""Reports of hosts of a fleet, by hand: the example's cases, faster or slower, on this disk or that one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sqlstress.analysis.fleet import Fleet, gathered
from sqlstress.analysis.fleet_hosts import host_of
from sqlstress.report import FileSystem, Report, Run, Warning, to_json
from tests.example_report import example_report
from tests.show.variants import with_case

NOISE = (1.0, 1.01, 0.99, 1.02, 0.98, 1.005, 0.995, 1.015, 0.985, 1.008)
"""What one host's trials differ by."""
EXAMPLE = example_report()


def host_report(
    factor: float = 1.0,
    trials: int = 10,
    sync_ms: float = 0.2,
    kind: str = "ext4",
    minute: int = 0,
    idle: bool = False,
) -> Report:
    """Return the report of a host so many times as fast as the example; `idle`: its syncs are none."""
    environment = EXAMPLE.environment
    assert environment.sync
    sync = replace(environment.sync, overwrite_p50_ns=int(sync_ms * 1e6))
    nothing = (Warning("sync-does-nothing", "A sync does nothing here.", serious=True),) if idle else ()
    return replace(
        EXAMPLE,
        created=f"2026-01-15T09:{minute:02}:00+00:00",
        environment=replace(
            environment,
            sync=sync,
            sync_after=None,
            file_system=FileSystem(kind, "disk", ""),
            warnings=nothing,
        ),
        runs=tuple(_repeated(run, factor, trials) for run in EXAMPLE.runs),
    )


def _repeated(run: Run, factor: float, count: int) -> Run:
    (trial,) = run.trials
    figures = [trial.tps * factor * NOISE[index % len(NOISE)] for index in range(count)]
    return replace(
        run, trials=tuple(replace(trial, index=index, tps=tps) for index, tps in enumerate(figures))
    )


def driven(report: Report, loop: str) -> Report:
    """Return a report as if this loop had driven its loads."""
    return with_case(report, spec=replace(report.runs[0].case.spec, loop=loop))


def four_hosts() -> dict[str, Report]:
    """Return three hosts alike but for noise, one whose syncs do nothing, and a slow one on another disk."""
    return {
        "anna": host_report(1.0, minute=1),
        "bert": host_report(1.03, minute=2, sync_ms=0.21),
        "carl": host_report(0.3, minute=3, sync_ms=4.0, kind="xfs"),
        "dora": host_report(9.0, minute=4, sync_ms=0.001, kind="tmpfs", idle=True),
        "emil": host_report(0.99, minute=5, sync_ms=0.19),
    }


def fleet_of(reports: Mapping[str, Report]) -> Fleet:
    """Return the fleet of reports by name."""
    return gathered(host_of(name, report) for name, report in reports.items())


def save(folder: Path, reports: Mapping[str, Report]) -> Path:
    """Save reports in a folder, each under its host's name."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, report in reports.items():
        (folder / f"{name}.json").write_text(to_json(report), encoding="utf-8")
    return folder
