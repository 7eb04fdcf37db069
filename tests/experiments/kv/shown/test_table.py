"""Tests of the one table: its rows, its columns, and which of them fall away."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.analysis.group import group_runs
from sqlstress.experiments.kv.experiment import Load
from sqlstress.experiments.kv.show import build
from sqlstress.report import Check, Report, Verdict
from sqlstress.show.blocks import MISSING, Table
from tests.render.variants import (
    EXAMPLE,
    classic_report,
    each_trial,
    troubled_report,
    update_report,
    with_case,
    with_one,
)

ALWAYS = ("files", "processes", "TPS total", "verified")


def table(report: Report) -> Table:
    (group,) = group_runs(report.runs)
    return build(group)


def column(report: Report, name: str) -> list[str]:
    shown = table(report)
    place = shown.headers.index(name)
    return [row[place] for row in shown.rows]


def test_the_table_has_the_columns_of_the_main_job_in_their_order() -> None:
    assert table(EXAMPLE).headers == (
        "files",
        "processes",
        "time s",
        "TPS per process",
        "TPS total",
        "commits/s",
        "gets/s",
        "replace p50 ms",
        "replace p99 ms",
        "get p99 ms",
        "fairness",
        "longest wait ms",
        "verified",
    )


def test_a_row_says_what_was_measured() -> None:
    row = table(EXAMPLE).rows[3]
    assert row == (
        "1",
        "8",
        "2.00",
        "1,558",
        "12,465",
        "6,232",
        "6,232",
        "0.140",
        "0.244",
        "0.011",
        "0.17",
        "1,970",
        "ok",
    )


def test_every_row_has_a_cell_for_each_header_and_each_alignment() -> None:
    for report in (EXAMPLE, classic_report(), troubled_report(), update_report()):
        shown = table(report)
        assert {len(shown.headers), len(shown.alignment)} == {len(row) for row in shown.rows} | {
            len(shown.headers)
        }
        assert len(shown.rows) == len(report.runs)


def test_a_run_of_gets_only_has_no_columns_for_replaces() -> None:
    def gets(trial: object) -> dict[str, object]:
        return {"get": EXAMPLE.runs[0].trials[0].latency["get"]}

    headers = table(each_trial(lambda trial: replace(trial, latency=gets(trial)))).headers  # type: ignore[arg-type]
    assert "get p99 ms" in headers
    assert not [header for header in headers if "replace" in header or "update" in header]


def test_a_kind_of_operation_that_never_completed_has_no_column() -> None:
    empty = replace(EXAMPLE.runs[0].trials[0].latency["get"], count=0)
    report = each_trial(lambda trial: replace(trial, latency={**trial.latency, "get": empty}))
    assert "get p99 ms" not in table(report).headers


def test_updates_have_a_column_when_there_are_any() -> None:
    assert "update p99 ms" in table(update_report()).headers
    assert "update p99 ms" not in table(EXAMPLE).headers


def test_rows_a_second_stand_in_the_table_of_batches_only() -> None:
    assert "rows/s" in table(with_case(spec=Load(batch=2))).headers
    assert "rows/s" not in table(EXAMPLE).headers


def test_a_case_that_could_not_be_measured_has_a_row_of_dashes() -> None:
    assert table(troubled_report()).rows[1] == ("1", "2", MISSING, MISSING, "failed", *[MISSING] * 8)


def test_figures_of_a_trial_that_is_not_valid_are_not_shown() -> None:
    report = each_trial(lambda trial: replace(trial, error="worker 1 died"))
    assert table(report).headers == ALWAYS
    assert set(column(report, "TPS total")) == {"failed"}


@pytest.mark.parametrize(
    ("status", "cell"), [("ok", "ok"), ("failed", "FAILED"), ("skipped", MISSING), ("unknown", "?")]
)
def test_the_verdict_stands_in_the_table(status: str, cell: str) -> None:
    verdict = Verdict((Check("last write", status),))
    assert set(column(each_trial(lambda trial: replace(trial, verdict=verdict)), "verified")) == {cell}


def test_a_wrong_verdict_is_shown_although_the_case_could_not_be_measured() -> None:
    wrong = Verdict((Check("last write", "failed"),))
    report = each_trial(lambda trial: replace(trial, verdict=wrong, error="worker 1 died"))
    assert set(column(report, "verified")) == {"FAILED"}


def test_repeated_cases_show_the_median_the_typical_trial_and_the_longest_wait_of_all() -> None:
    run = EXAMPLE.runs[0]
    trials = tuple(
        replace(run.trials[0], index=i, tps=tps, fairness=tps / 1000, longest_wait_ns=int(tps) * 1_000_000)
        for i, tps in enumerate((900.0, 300.0, 500.0, 600.0))
    )
    report = with_one(replace(run, trials=trials))
    names = ("TPS total", "TPS per process", "fairness", "longest wait ms")
    assert [column(report, name)[0] for name in names] == ["550 ±>99%", "550", "0.50", "900"]


def test_the_total_is_that_of_all_processes() -> None:
    assert column(EXAMPLE, "TPS total")[2] == "13,090"
    assert column(EXAMPLE, "TPS per process")[2] == "3,272"


def test_the_length_of_a_window_gives_way_first_and_that_of_a_fixed_count_late() -> None:
    (window,) = group_runs(EXAMPLE.runs)
    assert build(window).leaving[:3] == ("time s", "TPS per process", "rows/s")
    for report in (classic_report(), with_case(workload="classic"), with_case(ops=700)):
        (count,) = group_runs(report.runs)
        leaving = build(count).leaving
        assert leaving.index("time s") > leaving.index("TPS per process")


def test_a_column_that_leaves_takes_its_cells_along() -> None:
    shown = table(EXAMPLE)
    assert shown.narrower().rows[0] == (*shown.rows[0][:2], *shown.rows[0][3:])
    assert shown.narrower().headers == (*shown.headers[:2], *shown.headers[3:])


def test_pairs_that_are_read_together_are_gets_too() -> None:
    def paired(count: int) -> Report:
        trial = EXAMPLE.runs[3].trials[0]
        workers = tuple(replace(one, operations={**one.operations, "pair": count}) for one in trial.workers)
        return replace(EXAMPLE, runs=(replace(EXAMPLE.runs[3], trials=(replace(trial, workers=workers),)),))

    (without,), (more,) = column(paired(0), "gets/s"), column(paired(100_000), "gets/s")
    assert int(more.replace(",", "")) > int(without.replace(",", ""))
