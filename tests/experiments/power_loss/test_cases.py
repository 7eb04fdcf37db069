"""Tests of what the options of power cuts mean."""

from __future__ import annotations

from typing import Any

from sqlstress.options.option import Nothing
from sqlstress.plan import cases_of
from sqlstress.report.case import JOURNAL_MODES, SYNCHRONOUS, Case, Settings


def planned(**given: Any) -> tuple[Case, ...]:
    return cases_of({name.replace("_", "-"): value for name, value in given.items()}, "crash")


def test_one_configuration_is_planned_with_a_checkpoint_every_few_frames() -> None:
    (case,) = planned(power=True, seed=7)
    assert case == Case(
        workload="power-loss",
        driver="apsw",
        concurrency=3,
        duration_s=0.0,
        warmup_s=0.0,
        seed=7,
        verify="full",
        settings=Settings(wal_autocheckpoint=20, busy_timeout_ms=0),
        spec=Nothing(),
    )
    (other,) = planned(power=True, seed=7, wal_autocheckpoint="1000", buckets="4")
    assert (other.settings.wal_autocheckpoint, other.buckets) == (1000, 4)


def test_the_matrix_has_every_journal_mode_with_every_level() -> None:
    found = [(case.settings.journal_mode, case.settings.synchronous) for case in planned(matrix=True, seed=7)]
    assert found == [(mode, level) for mode in JOURNAL_MODES for level in SYNCHRONOUS]
