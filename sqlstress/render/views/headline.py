"""What a report says first: the title of its page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from sqlstress.analysis.comparison import Comparison
from sqlstress.display.blocks import Block, Bullets, Lines, Paragraph, Verdict
from sqlstress.display.clean import clean
from sqlstress.display.figures import FAILED
from sqlstress.render.views import Section
from sqlstress.render.views.comparison import comparison_heading, comparison_tables

LONGEST = 120
_SENTENCE = re.compile(r"[.!?](?=\s+[A-Z])")
_CLAUSE = re.compile(r"\([^)]*\)|([;,:]\s|\s(?=\())")
"""Where a sentence can be cut; what stands in brackets is passed over."""


def headline(sections: Iterable[Section]) -> str:
    """Return the first sentence of a report's verdict, or of its findings; wrong data comes before all.

    Of one that says nothing it is what was done.
    """
    blocks = [block for section in sections for block in section.blocks]
    said = [*_verdicts(blocks), *_findings(blocks)]
    wrong = (text for text in said if text.startswith(FAILED))
    return title_of(next(chain(wrong, said, _texts(blocks))))


def headline_beside(comparison: Comparison) -> str:
    """Return the same of reports side by side."""
    findings = [text for beside in comparison_tables(comparison) for text in beside.findings.texts]
    return title_of(next(chain(findings, _texts(comparison_heading(comparison)))))


def _verdicts(blocks: Iterable[Block]) -> Iterator[str]:
    yield from (block.text for block in blocks if isinstance(block, Verdict))


def _findings(blocks: Iterable[Block]) -> Iterator[str]:
    yield from (text for block in blocks if isinstance(block, Bullets) for text in block.texts)


def _texts(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Lines():
                yield from block.texts
            case Paragraph():
                yield block.text
    yield "Nothing was measured."


def title_of(text: str) -> str:
    """Return the first sentence of a text, and of a long one the clauses that fit."""
    sentence = _SENTENCE.split(clean(text), maxsplit=1)[0].rstrip(".")
    if len(sentence) <= LONGEST:
        return sentence
    ends = [found.start() for found in _CLAUSE.finditer(sentence) if found[1] and found.start() <= LONGEST]
    return f"{sentence[: ends[-1] if ends and ends[-1] > LONGEST // 3 else LONGEST]} …"
