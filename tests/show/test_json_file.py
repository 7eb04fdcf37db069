"""The findings of a report are data in its JSON, for programs that read the file."""

import json
from dataclasses import replace

import jsonschema
import pytest

from sqlstress.analysis import sentences
from sqlstress.analysis.advice import advise
from sqlstress.analysis.finding import Finding
from sqlstress.report import from_json
from sqlstress.report.json_schema import report_schema
from sqlstress.show import json_file
from sqlstress.show.json_file import report_json
from tests.example_report import example_report


def test_findings_in_the_json_have_facts_and_fit_the_schema() -> None:
    report = example_report()
    document = json.loads(report_json(report))
    jsonschema.Draft202012Validator(report_schema()).validate(document)
    said = [(finding["code"], finding["text"]) for finding in document["findings"]]
    assert said == [(finding.code, finding.text) for finding in advise(report)]
    assert from_json(report_json(report)) == report


def test_facts_are_numbers_lists_and_objects_not_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    check = sentences.FailedCheck("rows", 2, None, 1, 1, ("a", "b"))
    found = Finding(sentences.data_wrong, where="8 processes", checks=(check, check))
    monkeypatch.setattr(json_file, "advise", lambda report: [found])
    (one,) = json.loads(report_json(replace(example_report(), runs=())))["findings"]
    inner = {"name": "rows", "problems": 2, "checked": None, "failed": 1, "passes": 1, "examples": ["a", "b"]}
    assert one["facts"] == {"where": "8 processes", "checks": [inner, inner]}


def test_fact_that_is_no_number_is_null(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Finding(sentences.proof_cost, share=float("nan"), where="8 processes")
    monkeypatch.setattr(json_file, "advise", lambda report: [found])
    (one,) = json.loads(report_json(replace(example_report(), runs=())))["findings"]
    assert one["facts"] == {"share": None, "where": "8 processes"}
