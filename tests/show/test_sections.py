"""Tests of the headline, the first sentence of a report."""

import pytest

from sqlstress.show.blocks import Block, Bullets, Lines, Paragraph, VerdictLine
from sqlstress.show.sections import LONGEST, Section, headline

BEST = Bullets(("Best: 1.2 million a second. Try more.", "Starvation at 8."))


def headline_of(*parts: Block) -> str:
    return headline([Section((part,)) for part in parts])


def test_headline_is_the_first_sentence_of_the_first_finding() -> None:
    assert headline_of(Lines(("50% gets.",)), BEST) == "Best: 1.2 million a second"


def test_verdict_comes_before_findings_and_wrong_data_before_all() -> None:
    assert headline_of(BEST, VerdictLine("PASS: no drop of 10%. So it is.")) == "PASS: no drop of 10%"
    assert headline_of(BEST, Bullets(("Steady.", "FAILED at 2 processes: a row is gone."))) == (
        "FAILED at 2 processes: a row is gone"
    )


def test_headline_without_findings_says_what_was_done() -> None:
    assert headline_of(Lines(("50% gets; 2s windows.",)), Paragraph("later")) == "50% gets; 2s windows"
    assert headline_of() == "Nothing was measured"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"Take this ({'x' * 40}, {'y' * 20}) or else that ({'z' * 80}).", 87),
        (f"{'a' * 60}; {'b' * 90}.", 60),
        (f"{'w' * 300}.", LONGEST),
    ],
)
def test_long_sentence_is_cut_after_a_clause_outside_of_brackets(text: str, expected: int) -> None:
    assert headline_of(VerdictLine(text)) == f"{text[:expected]} …"
