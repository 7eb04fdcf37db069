"""Tests of the headline: what a report says first."""

from __future__ import annotations

import pytest

from sqlstress.show.blocks import Block, Bullets, Lines, Paragraph, Verdict
from sqlstress.show.sections import LONGEST, Section, headline

BEST = Bullets(("Best: 1.2 million a second. Try more.", "Starvation at 8."))


def said(*parts: Block) -> str:
    return headline([Section((part,)) for part in parts])


def test_it_is_the_first_sentence_of_the_first_finding() -> None:
    assert said(Lines(("50% gets.",)), BEST) == "Best: 1.2 million a second"


def test_a_verdict_comes_before_findings_and_wrong_data_before_all() -> None:
    assert said(BEST, Verdict("PASS: no drop of 10%. So it is.")) == "PASS: no drop of 10%"
    assert said(BEST, Bullets(("Steady.", "FAILED at 2 processes: a row is gone."))) == (
        "FAILED at 2 processes: a row is gone"
    )


def test_a_report_without_a_finding_says_what_was_done_or_that_nothing_was() -> None:
    assert said(Lines(("50% gets; 2s windows.",)), Paragraph("later")) == "50% gets; 2s windows"
    assert said() == "Nothing was measured"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"Take this ({'x' * 40}, {'y' * 20}) or else that ({'z' * 80}).", 87),
        (f"{'a' * 60}; {'b' * 90}.", 60),
        (f"{'w' * 300}.", LONGEST),
    ],
)
def test_a_long_sentence_ends_where_a_clause_does_and_never_within_brackets(text: str, expected: int) -> None:
    assert said(Verdict(text)) == f"{text[:expected]} …"
