"""Every phrase can be read with sample facts, and says nothing that it was not given."""

from __future__ import annotations

import re

import pytest

from sqlstress.analysis.finding import Finding
from sqlstress.show.phrases import FORMATS, Phrase, phrase, phrases


@pytest.mark.parametrize("code", sorted(phrases()))
def test_a_phrase_can_be_read_with_samples_and_what_it_may_leave_out_ends(code: str) -> None:
    one = phrases()[code]
    text = one.with_samples()
    assert text == " ".join(text.split()) and not re.search(r"\{\w+[}:?]", text)
    assert set(re.findall(r"\{\w+:(\w+)", one.template)) <= set(FORMATS)
    # Two parts that end together would be a bracket.
    assert one.template.count("[") == one.template.count("]")
    assert "]]" not in one.template or "[[" in one.template


def test_a_part_without_its_fact_is_left_out() -> None:
    one = Phrase("Lost[, {wrong}[ of {checked}] rows][ ({note})].")
    assert one.filled({"wrong": 2, "checked": 500, "note": "late"}) == "Lost, 2 of 500 rows (late)."
    assert one.filled({"wrong": 0, "checked": None, "note": ""}) == "Lost, 0 rows."
    assert one.filled({}) == "Lost."


def test_a_fact_chooses_between_two_texts_and_is_written_in_its_format() -> None:
    one = Phrase("[[{share:percent}]] {up?rose|fell} in {count:plural trial}")
    assert one.filled({"share": 0.2, "up": 0.1, "count": 1}) == "[20%] rose in 1 trial"
    assert one.filled({"share": 0.2, "up": None, "count": 2}) == "[20%] fell in 2 trials"


def test_a_sentence_begins_with_a_capital_whichever_part_it_begins_with() -> None:
    one = Phrase("^[On {where} ]the total{odd? may have|}[ of {kind}{odd?, it seems,|}] rose.")
    assert one.filled({"where": "1 bucket", "odd": True, "kind": "gets"}) == (
        "On 1 bucket the total may have of gets, it seems, rose."
    )
    # What is asked of a fact leaves nothing out; what is to be written does.
    assert one.filled({"odd": False, "kind": "gets"}) == "The total of gets rose."
    assert one.filled({"odd": "yes"}) == "The total may have rose."


def test_facts_with_the_marks_of_a_template_are_no_template() -> None:
    assert Phrase("It said {what}[ at {where}].").filled({"what": "[{x}]", "where": "{y}"}) == (
        "It said [{x}] at {y}."
    )


def test_a_finding_of_a_part_says_which_and_findings_lie_within_each_other() -> None:
    wrong = Finding("check-failed", name="rows", problems=2, checked=None, failed=None, passes=1, examples=())
    lost = Finding("data-wrong", where="8 processes", checks=(wrong, wrong))
    assert phrase(lost.of_part("driver apsw")) == (
        "[driver apsw] FAILED at 8 processes: rows, 2 wrong; rows, 2 wrong."
    )
    assert lost == Finding("data-wrong", where="8 processes", checks=(wrong, wrong))
    assert lost != lost.of_part("driver apsw") and hash(lost) != hash(wrong)
