"""Every phrase can be read with sample facts, and says nothing that it was not given."""

from __future__ import annotations

import re

import pytest

from sqlstress.analysis.finding import Finding
from sqlstress.show.phrases import FORMATS, NUMBERS, Phrase, phrase, phrases
from sqlstress.statistics.units import plural


@pytest.mark.parametrize("code", sorted(phrases()))
def test_a_phrase_can_be_read_with_samples_and_what_it_may_leave_out_ends(code: str) -> None:
    one = phrases()[code]
    text = one.with_samples()
    assert text == " ".join(text.split()) and not re.search(r"\{\w+[}:?]", text)
    assert set(re.findall(r"\{\w+:(\w+)", one.template)) <= set(FORMATS)
    # Two parts that end together would be a bracket.
    assert one.template.count("[") == one.template.count("]")
    assert "]]" not in one.template or "[[" in one.template


COUNTED = (
    r"access|call|case|cell|checkpoint|command|combination|commit|connection|cycle|frame|host|kill|kind|"
    r"operation|page|pair|pass|process|read|round|row|sample|table|transaction|trial|window|write"
)
"""Nouns that sentences count."""
ALWAYS_SEVERAL = {
    "settings-differ": "connections differ in two ways or more",
    "sessions-differ": "connections differ in two ways or more",
    "hosts-equal": "hosts are compared if there are two or more",
    "hunt-pause": "a share: 1 of so many calls",
    "images-lost": "counts images, not transactions",
    "images-torn": "counts images, not transactions",
    "checkpoint": "processes in step are two or more",
    "large-wal": "1,000 pages",
    "no-anomaly": "an anomaly needs several reads and writes",
}


COUNTS = ("whole", "plain", "plural", "processes", "files")
LISTS = ("or", "counts", "quoted", "semicolons", "sentences", "commas")


@pytest.mark.parametrize("code", sorted(phrases().keys() - ALWAYS_SEVERAL))
def test_phrase_counts_single_things_in_the_singular(code: str) -> None:
    template = phrases()[code].template
    fields = re.findall(r"\{(\w+)(?::(\w+))?[^{}]*\}", template)
    facts = {name: 1 for name, _ in fields}
    facts |= {name: NUMBERS[kind] for name, kind in fields if kind in NUMBERS and kind not in COUNTS}
    facts |= {name: () for name, kind in fields if kind in LISTS}
    text = phrases()[code].filled({**facts, "transaction": "transfer"})
    assert not re.search(rf"(?<![\d.,])1 (?:more |acknowledged |planned )?(?:{COUNTED})e?s\b", text), text


@pytest.mark.parametrize(
    ("noun", "several"), [("kill", "2 kills"), ("pass", "2 passes"), ("fresh batch", "2 fresh batches")]
)
def test_plural_follows_the_ending_of_the_noun(noun: str, several: str) -> None:
    assert (plural(1, noun), plural(2, noun)) == (f"1 {noun}", several)


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
