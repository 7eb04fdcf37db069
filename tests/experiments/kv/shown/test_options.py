"""What a load was asked for stands in the CSV and above the table: a new option has to come there."""

from __future__ import annotations

import csv
import io
from dataclasses import fields, replace

from sqlstress.experiments.kv.experiment import Load
from sqlstress.report import Report
from sqlstress.show.formats import FORMATS
from sqlstress.show.text import report_text
from tests.example_report import example_report
from tests.loads import OTHERS

NOT_A_COLUMN = {"where": "it changes no load; what it found has columns of its own"}
NOT_ABOVE = {
    "begin": "it is said where a transaction has several statements",
    "where": "it changes no load; what it found has a table of its own",
}


def asked(load: Load) -> Report:
    """Return a report of one case with this load."""
    report = example_report()
    run = report.runs[0]
    return replace(report, runs=(replace(run, case=replace(run.case, spec=load)),), planned=1)


def row(load: Load) -> dict[str, str]:
    return next(iter(csv.DictReader(io.StringIO(FORMATS["csv"](asked(load))))))


def above(load: Load) -> str:
    return report_text(asked(load)).partition("\n\n")[2].partition("\n\n")[0]


def test_every_field_is_tried() -> None:
    usual = Load()
    assert {field.name for field in fields(Load)} == OTHERS.keys()
    assert all(getattr(usual, name) != value for name, value in OTHERS.items())


def test_every_option_of_a_load_has_a_column() -> None:
    usual = row(Load())
    missing = [name for name, value in OTHERS.items() if row(Load(**{name: value})) == usual]
    assert missing == list(NOT_A_COLUMN)


def test_every_option_of_a_load_stands_above_the_table() -> None:
    usual = above(Load())
    missing = [name for name, value in OTHERS.items() if above(Load(**{name: value})) == usual]
    assert missing == list(NOT_ABOVE)
    # Where it means something it is there.
    batch = Load(batch=2)
    assert above(replace(batch, begin="deferred")) != above(batch)
