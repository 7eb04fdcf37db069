"""Findings: sentences of a report, stored as a function that returns the sentence, and its arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec

P = ParamSpec("P")
GRAVE, CAUSE, USUAL, ASIDE = range(4)
"""Ranks of sentences: reports show sentences of lower rank first.

GRAVE: wrong or missing data. CAUSE: causes of problems in the user's code. USUAL: other conclusions. ASIDE:
remarks on accuracy.
"""
_RANKS: dict[Callable[..., str], int] = {}
"""Rank of each sentence function whose rank is not USUAL."""


def grave(sentence: Callable[P, str]) -> Callable[P, str]:
    """Mark sentences of the decorated function as GRAVE: wrong or missing data, shown first."""
    _RANKS[sentence] = GRAVE
    return sentence


def causal(sentence: Callable[P, str]) -> Callable[P, str]:
    """Mark sentences of the decorated function as CAUSE: causes of problems in the user's code."""
    _RANKS[sentence] = CAUSE
    return sentence


def aside(sentence: Callable[P, str]) -> Callable[P, str]:
    """Mark sentences of the decorated function as ASIDE: remarks on accuracy, shown last."""
    _RANKS[sentence] = ASIDE
    return sentence


class Finding:
    """Sentence of a report, stored as a function and its arguments, which JSON reports list as facts."""

    __slots__ = ("facts", "part", "sentence")

    def __init__(self, sentence: Callable[P, str], /, *_: P.args, **facts: P.kwargs) -> None:
        self.sentence: Callable[..., str] = sentence
        """Function that returns the English sentence. The facts are its keyword arguments."""
        self.facts: Mapping[str, Any] = facts
        """Keyword arguments of `sentence`: numbers, labels, and named tuples of numbers and labels.

        Times are in ns, and their names end in _ns. Shares are from 0 to 1. The fact `unclear` is true if
        noise hides the answer.
        """
        self.part = ""
        """Label of the rows of a table to which the sentence applies; empty for the whole table."""

    @property
    def code(self) -> str:
        """Name of the kind of finding in JSON reports, such as "best". Released codes never change."""
        return code_of(self.sentence)

    @property
    def rank(self) -> int:
        """Rank for the order of display: GRAVE, CAUSE, USUAL or ASIDE."""
        return _RANKS.get(self.sentence, USUAL)

    @property
    def text(self) -> str:
        """English sentence; "[label] sentence" if the finding applies only to rows with this label."""
        text = self.sentence(**self.facts)
        return f"[{self.part}] {text}" if self.part else text

    def with_part(self, part: str) -> Finding:
        """Return a copy of the finding that applies only to table rows with the label `part`."""
        finding = Finding(self.sentence, **self.facts)
        finding.part = part
        return finding

    def _key(self) -> tuple[object, ...]:
        return self.code, self.part, repr(sorted(self.facts.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Finding) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"Finding({self.code!r}, part={self.part!r}, **{dict(self.facts)!r})"


def code_of(sentence: Callable[..., str]) -> str:
    """Return the code of a finding: the name of its function with dashes, such as "data-wrong"."""
    return sentence.__name__.rstrip("_").replace("_", "-")


def texts(findings: Iterable[Finding]) -> list[str]:
    """Return findings as English sentences."""
    return [finding.text for finding in findings]


def is_unclear(finding: Finding) -> bool:
    """Return whether noise hides the answer: any fact, or field of a fact, named `unclear` is true."""
    return bool(finding.facts.get("unclear")) or any(map(_is_unclear, finding.facts.values()))


def _is_unclear(fact: Any) -> bool:
    return bool(getattr(fact, "unclear", False)) or (isinstance(fact, tuple) and any(map(_is_unclear, fact)))
