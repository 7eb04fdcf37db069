"""Display of the `cycles` experiment."""

from __future__ import annotations

from dataclasses import replace

from sqlstress.experiments.classics.spec import Cycling
from sqlstress.show.text import WIDTH, report_text
from tests.cycles_report import cycles_report, published_settings
from tests.several import column, several, tables


def test_several_passes_show_the_median_total_with_its_spread() -> None:
    runs = [several(each_run, 0.05) for each_run in published_settings()[2:]]
    (table,) = tables(*runs)
    assert column(table, "total ms") == ["7,122 ±10%", "2,297 ±10%", "2,293 ±10%"]
    assert "±: 95% interval of the typical total" in " ".join(report_text(cycles_report(*runs)).split())


def test_total_disturbed_by_other_programs_is_marked_and_fits_80_columns() -> None:
    runs = [several(each_run, 5.0) for each_run in published_settings()]
    met = [
        replace(each_run, trials=tuple(replace(each, foreign_share=1.0) for each in each_run.trials))
        for each_run in runs
    ]
    text = report_text(cycles_report(*met))
    assert "~7,122 ±>99%" in text
    assert max(map(len, text.splitlines())) <= WIDTH


def test_failed_run_is_marked_in_its_row() -> None:
    broken = replace(published_settings()[2], trials=(), error="worker 1 was killed by SIGKILL")
    (table,) = tables(broken, published_settings()[3])
    assert column(table, "total ms") == ["failed", "2,297"]


def test_table_is_separate_for_other_numbers_of_rows_or_cycles() -> None:
    usual, off = published_settings()[3:]
    case = replace(usual.case, spec=Cycling(cycles=7, rows=2, transaction="none"))
    text = report_text(cycles_report(usual, replace(usual, case=case)))
    assert text.count("setting") == 2
    assert "7 cycles: insert 2 rows one by one" in text
    # The heading has only settings that all rows share.
    assert "wal_autocheckpoint=0" in report_text(cycles_report(off))
    assert "wal_autocheckpoint" not in report_text(cycles_report(off, usual))


def test_legend_explains_only_the_parts_shown() -> None:
    text = " ".join(report_text(cycles_report(published_settings()[2])).split())
    assert "one transaction" not in text
    assert "data (verified): ok = the table holds what the last acknowledged commit left" in text
