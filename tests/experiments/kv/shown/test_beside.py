"""Tests of how what ran beside the load is shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.analysis.group import group_runs
from sqlstress.experiments.kv.experiment import Checkpointing, Load
from sqlstress.experiments.kv.show_wal import blocks, words
from sqlstress.report import Report, Trial
from sqlstress.show.blocks import MISSING, Block, Paragraph, Picture, Table
from sqlstress.show.text import report_text
from tests.render.variants import EXAMPLE, beside_report, each_trial, with_case


def shown(report: Report) -> list[Block]:
    (group,) = group_runs(report.runs)
    return list(blocks(group))


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (Checkpointing("restart"), "beside the load a RESTART checkpoint every 20ms"),
        (Checkpointing(pinned_reader=True), "beside the load a reader that stays in its snapshot"),
        (
            Checkpointing("passive", 1.5, pinned_reader=True),
            "beside the load a PASSIVE checkpoint every 1.5s and a reader that stays in its snapshot",
        ),
    ],
)
def test_the_heading_says_what_ran_beside_the_load(asked: Checkpointing, told: str) -> None:
    assert words(asked) == told
    text = " ".join(report_text(with_case(beside_report(), spec=Load(checkpointing=asked))).split())
    assert f"8-byte values; {told}; 2s windows" in text


def test_the_table_has_a_row_for_each_case() -> None:
    table, meanings, picture = shown(beside_report())
    assert isinstance(table, Table)
    assert table.headers == (
        "files",
        "processes",
        "checkpoints",
        "busy",
        "stuck",
        "longest ms",
        "share of time",
        "replace p99.9 ms",
        "largest WAL MB",
    )
    assert table.rows[3][:7] == ("1", "8", "20", "0", "10", "9.00", "0.05")
    assert table.rows[3][8] == "352"
    assert isinstance(meanings, Paragraph)
    assert isinstance(picture, Picture)


def test_a_reader_alone_has_no_columns_of_checkpoints_and_no_words_for_them() -> None:
    only_wal = each_trial(
        lambda trial: replace(trial, series=tuple(one for one in trial.series if "WAL" in one.name)),
        with_case(beside_report(), spec=Load(checkpointing=Checkpointing(pinned_reader=True))),
    )
    table, meanings, _ = shown(only_wal)
    assert isinstance(table, Table)
    assert table.headers == ("files", "processes", "replace p99.9 ms", "largest WAL MB")
    assert isinstance(meanings, Paragraph)
    assert "checkpoints" not in meanings.text


def test_a_case_that_could_not_be_measured_has_a_row_without_figures() -> None:
    report = beside_report()
    first, *others = report.runs
    table = shown(replace(report, runs=(replace(first, trials=(), error="no disk"), *others)))[0]
    assert isinstance(table, Table)
    assert set(table.rows[0][2:]) == {MISSING}


def test_too_few_replaces_for_a_p999_are_no_reason_to_leave_its_column_out() -> None:
    def few(trial: Trial) -> Trial:
        replaces = replace(trial.latency["replace"], p999_ns=None)
        return replace(trial, latency={**trial.latency, "replace": replaces})

    table = shown(each_trial(few, beside_report()))[0]
    assert isinstance(table, Table)
    place = table.headers.index("replace p99.9 ms")
    assert {row[place] for row in table.rows} == {MISSING}


def test_where_nothing_ran_beside_the_load_nothing_is_shown() -> None:
    assert shown(with_case(EXAMPLE, buckets=1)) == []


def test_where_nothing_was_measured_nothing_is_shown() -> None:
    report = beside_report()
    assert shown(replace(report, runs=tuple(replace(run, trials=()) for run in report.runs))) == []
