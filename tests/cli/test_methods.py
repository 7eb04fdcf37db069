"""The experiment with methods through the command line: small, and with real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstress.experiment import case_label
from sqlstress.report import Report
from tests.cli.conftest import Cli, saved
from tests.rows import thorough

SMALL = ("--repeat", "1", "--synchronous", "off", "-o", "report.json", "-o", "table.csv", "-o", "page.md")


def outcomes(report: Report) -> dict[str, str]:
    return {
        case_label(run.case): run.trials[0].outcome if run.trials else run.skipped or run.error or ""
        for run in report.runs
    }


@pytest.mark.parametrize(
    ("phase", "scale", "cells"),
    [("insert", "40", 7), thorough("allocate", "12", 9), thorough("query", "36", 8)],
)
def test_phase_is_measured_verified_and_shown(
    cli: Cli, tmp_path: Path, phase: str, scale: str, cells: int
) -> None:
    said = cli("methods", "--phase", phase, "--scale", scale, "--driver", "sqlite3", *SMALL)
    assert (said.code, said.err) == (0, "")
    assert max(map(len, said.out.splitlines())) <= 80
    report = saved()
    assert len(report.runs) == cells
    assert {run.verdict.status for run in report.runs} == {"ok"}
    assert set(outcomes(report).values()) == {"done"}
    for run in report.runs:
        (trial,) = run.trials
        assert trial.rows == run.case.spec.rows
        assert trial.rows_per_s == pytest.approx(trial.rows / trial.seconds)
        assert list(trial.latency) == [phase]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.md", "report.json", "table.csv"]


@pytest.mark.thorough
def test_timed_out_method_is_not_run_at_larger_scales(cli: Cli) -> None:
    # A busy machine may need 0.1 s for ten rows.
    said = cli(
        *("methods", "--phase=insert", "--scale=10,500000,600000", "--method=1b1", "--timeout=500ms"),
        *("--driver", "sqlite3", *SMALL),
    )
    assert (said.code, said.err) == (0, "")
    told = outcomes(saved())
    assert told["insert 10 by 1b1, sqlite3, 1 process"] == "done"
    assert told["insert 500,000 by 1b1, sqlite3, 1 process"] == "timeout"
    assert told["insert 600,000 by 1b1, sqlite3, 1 process"] == "1b1 timed out at 500,000 already"


@pytest.mark.thorough
def test_timed_out_cell_has_no_further_passes(cli: Cli) -> None:
    said = cli(
        *("methods", "--phase=insert", "--scale=10,500000", "--method=1b1", "--timeout=500ms"),
        *("--driver", "sqlite3", *SMALL, "--repeat", "3"),
    )
    assert (said.code, said.err) == (0, "")
    passes = {(run.case.spec.scale, run.trials[0].outcome): len(run.trials) for run in saved().runs}
    assert passes[10, "done"] == 3
    # Each combination with WAL and TSC is a cell.
    assert passes[500_000, "timeout"] == 1


@pytest.mark.thorough
def test_limit_of_sqlite_is_not_a_timeout(cli: Cli) -> None:
    said = cli(
        *("methods", "--phase", "query", "--scale", "20,2000,2200", "--method", "blk,values"),
        *("--driver", "sqlite3", *SMALL, "--samples", "150"),
    )
    assert (said.code, said.err) == (0, "")
    told = outcomes(saved())
    assert told["query 20 by BLK, sqlite3, 1 process"] == "done"
    assert told["query 2,000 by BLK, sqlite3, 1 process"] == "limit"
    assert told["query 2,200 by BLK, sqlite3, 1 process"] == "BLK met a limit at 2,000 already"
    assert told["query 2,200 by VALUES, sqlite3, 1 process"] == "done"
