"""Tests of the sentence under the table: it explains the columns that are there, and no others."""

from __future__ import annotations

from dataclasses import replace

from sqlstress.analysis.group import group_runs
from sqlstress.experiments.kv.show import build, legend
from sqlstress.report import Report
from sqlstress.show.blocks import MISSING
from tests.example_report import failed_report
from tests.render.variants import EXAMPLE, classic_report, each_trial, troubled_report


def explained(report: Report) -> str:
    (group,) = group_runs(report.runs)
    return "; ".join(legend(group, build(group))) + "."


def test_a_transaction_is_explained_and_so_is_a_pair() -> None:
    assert explained(EXAMPLE).startswith("TPS: transactions a second, each a get or a commit; p50 and p99: ")
    assert explained(classic_report()).startswith(
        "TPS: pairs a second, each a set and a get of the same key; "
    )


def test_percentiles_that_are_not_shown_are_not_explained() -> None:
    latency = EXAMPLE.runs[0].trials[0].latency
    text = "p50 and p99: half and 99% of the operations were as fast or faster; fairness"
    assert text in explained(EXAMPLE)
    assert "; p99: 99% of the operations were as fast or faster; " in explained(
        each_trial(lambda trial: replace(trial, latency={"get": latency["get"]}))
    )
    assert "p99" not in explained(each_trial(lambda trial: replace(trial, latency={})))


def test_only_the_verdicts_that_occur_are_explained() -> None:
    assert explained(EXAMPLE).endswith("; verified: ok = no acknowledged write was lost.")
    assert explained(failed_report()).endswith("was lost, FAILED = the data is wrong.")
    assert explained(troubled_report()).endswith(f"? = it could not be decided, {MISSING} = not checked.")


def test_figures_that_nobody_measured_are_not_explained() -> None:
    failed = each_trial(lambda trial: replace(trial, error="worker 1 died"))
    assert "fairness" not in explained(failed) and "longest wait" not in explained(failed)
