"""How cases at a rate are shown: the table, what is said of them, the curve of latency over rate."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from sqlstress.analysis.advice import advise
from sqlstress.analysis.comparison import compare
from sqlstress.analysis.group import group_runs
from sqlstress.report import Report
from sqlstress.show.at_a_rate import plots
from sqlstress.show.csv_file import report_csv
from sqlstress.show.page.html_file import report_html
from sqlstress.show.text import comparison_text
from tests.example_report import example_report
from tests.rate_report import rate_report, rate_run, rate_trial

REPORT = rate_report()


def told(report: Report) -> dict[str, str]:
    return {finding.code: finding.text for finding in advise(report)}


def test_the_saturated_rate_is_said_to_be_and_no_other() -> None:
    assert (
        "4 processes on 1 bucket at 6,000/s: 51% of the due operations were done" in told(REPORT)["saturated"]
    )


def test_from_where_p99_is_higher_is_said_with_its_interval() -> None:
    assert " times that at " in told(REPORT)["p99-by-rate"]
    assert told(REPORT)["p99-by-rate"].startswith("With 4 processes on 1 bucket, p99 was ")
    near = rate_report((500, 501))
    assert "Up to 501/s it differs by less than 10%" in told(near)["p99-by-rate"]


def test_noise_that_hides_a_difference_is_said() -> None:
    noisy = [rate_run(rate, 5, noise=0.9) for rate in (500, 600)]
    assert "Cannot tell" in told(replace(REPORT, runs=tuple(noisy)))["p99-by-rate"]


def test_nothing_of_it_is_said_of_a_closed_loop() -> None:
    assert not told(example_report()).keys() & {"saturated", "p99-by-rate"}


def test_a_closed_loop_has_a_table_of_its_own() -> None:
    both = replace(REPORT, runs=(*REPORT.runs, *example_report().runs))
    assert len(group_runs(both.runs)) == 2


def test_the_page_has_the_curve_over_the_rate_with_service_times_beside_it() -> None:
    curve, distribution = plots(group_runs(REPORT.runs)[0])
    (view,) = curve.views
    assert [trace["name"] for trace in view.data] == ["p50", "p99", "p99.9", "max", "service p99"]
    assert view.data[1]["x"] == [500, 1000, 2900, 6000]
    assert view.data[1]["y"] == sorted(view.data[1]["y"])
    assert len(distribution.views) == 4
    assert "Latency by rate" in report_html(REPORT)


def test_the_csv_has_its_columns_where_there_is_a_rate_only() -> None:
    rows = list(csv.DictReader(io.StringIO(report_csv(REPORT))))
    assert {row["rate"] for row in rows} == {"500", "1000", "2900", "6000"}
    assert rows[0]["due_operations"] == "1000"
    assert rows[-1]["queued_operations"] not in ("", "0")
    assert "due_operations" not in report_csv(example_report())


def test_reports_are_compared_rate_by_rate() -> None:
    shown = comparison_text(compare([("one", REPORT), ("other", REPORT)], False))
    assert all(f" {rate} " in shown for rate in ("500", "1,000", "2,900", "6,000"))


@pytest.mark.parametrize("latest_ns", [2_000, 50_000_000])
def test_a_harness_that_was_late_says_so(latest_ns: int) -> None:
    (run,) = rate_report((500,)).runs
    late = rate_trial(500, 3000).latency["replace"]
    late = replace(late, p99_ns=float(latest_ns), buckets=())
    trials = (replace(run.trials[0], arrived=replace(run.trials[0].arrived, lateness=late)),)  # type: ignore[type-var]
    found = told(replace(REPORT, runs=(replace(run, trials=trials),)))
    assert ("harness-late" in found) == (latest_ns > 1_000_000)


def test_what_is_skipped_makes_no_queue() -> None:
    run = rate_run(6_000, 5)
    assert run.case.arrivals
    limited = replace(run.case, arrivals=replace(run.case.arrivals, latency_limit_s=0.005))
    said = told(replace(REPORT, runs=(replace(run, case=limited),)))["saturated"]
    assert "were skipped (--latency-limit)" in said and "queue" not in said
