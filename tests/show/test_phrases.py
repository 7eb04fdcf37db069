"""Every sentence reads well with sample facts, and without the facts that may be missing."""

import re
from inspect import signature
from typing import Any

import pytest

from sqlstress.analysis import sentences
from sqlstress.analysis.finding import Finding
from sqlstress.show.phrases import facts_of, variants_of
from sqlstress.show.phrases import sentences as all_sentences
from sqlstress.statistics.compare import Ratio
from sqlstress.statistics.units import plural

every_sentence = pytest.mark.parametrize("code", sorted(all_sentences()))


MOST_CODES = 150
"""A finding of a report needs a code only if a user can act on it, or would be misled without it."""


PYTHON = re.compile(r"(?<!isolation_level=)None(?! was)|False")
"""Pattern of Python's words, which belong in no sentence."""


def test_number_of_codes_is_limited() -> None:
    assert len(all_sentences()) <= MOST_CODES


@every_sentence
def test_sentence_with_samples_is_one_line(code: str) -> None:
    sentence = all_sentences()[code]
    for facts in variants_of(sentence):
        text = sentence(**facts)
        assert text == " ".join(text.split()) and not PYTHON.search(text)


@every_sentence
def test_sentence_leaves_out_missing_facts(code: str) -> None:
    sentence = all_sentences()[code]
    facts = {
        name: fact
        for name, fact in facts_of(sentence).items()
        if signature(sentence).parameters[name].default is signature(sentence).empty
    }
    text = sentence(**facts)
    assert text.strip() == " ".join(text.split()) and not PYTHON.search(text)


COUNTED = (
    r"access|call|case|cell|checkpoint|command|combination|commit|connection|cycle|frame|host|kill|kind|"
    r"operation|page|pair|pass|process|read|round|row|sample|table|transaction|trial|window|write"
)
"""Nouns that sentences count."""
ALWAYS_SEVERAL = {
    "settings-differ": "connections differ in two ways or more",
    "checkpoint": "processes in step are two or more",
    "large-wal": "1,000 pages",
}


@pytest.mark.parametrize("code", sorted(all_sentences().keys() - ALWAYS_SEVERAL))
def test_sentence_counts_single_things_in_the_singular(code: str) -> None:
    sentence = all_sentences()[code]

    def single(fact: Any) -> Any:
        if isinstance(fact, Ratio):
            return fact
        if hasattr(fact, "_fields"):
            return type(fact)(*map(single, fact))
        if isinstance(fact, tuple):
            return tuple(map(single, fact))
        return 1 if type(fact) is int else fact

    text = sentence(**{name: single(fact) for name, fact in facts_of(sentence).items()})
    assert not re.search(rf"(?<![\d.,])1 (?:more |acknowledged |planned )?(?:{COUNTED})e?s\b", text), text


@pytest.mark.parametrize(
    ("noun", "several"), [("kill", "2 kills"), ("pass", "2 passes"), ("fresh batch", "2 fresh batches")]
)
def test_plural_follows_the_ending_of_the_noun(noun: str, several: str) -> None:
    assert (plural(1, noun), plural(2, noun)) == (f"1 {noun}", several)


def test_finding_of_a_part_names_it() -> None:
    wrong = sentences.FailedCheck("rows", problems=2, checked=None, failed=1, passes=1)
    lost = Finding(sentences.data_wrong, where="8 processes", checks=(wrong, wrong))
    assert lost.with_part("driver apsw").text == (
        "[driver apsw] FAILED at 8 processes: rows, 2 wrong; rows, 2 wrong."
    )
    assert lost == Finding(sentences.data_wrong, where="8 processes", checks=(wrong, wrong))
    assert lost != lost.with_part("driver apsw") and hash(lost) != hash(lost.with_part("driver apsw"))
