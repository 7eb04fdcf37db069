"""Finding: a sentence of a report, stored as the function that writes it and the facts that it states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec

P = ParamSpec("P")
GRAVE, CAUSE, USUAL, ASIDE = range(4)
"""Ranks of sentences, in the order of display.

GRAVE: wrong or missing data. CAUSE: causes in the user's code. USUAL: other conclusions. ASIDE: limits of
figures.
"""
_RANKS: dict[Callable[..., str], int] = {}
"""Rank of each sentence function that is not USUAL."""


def grave(sentence: Callable[P, str]) -> Callable[P, str]:
    """Give the findings of a decorated sentence function the rank GRAVE."""
    _RANKS[sentence] = GRAVE
    return sentence


def causal(sentence: Callable[P, str]) -> Callable[P, str]:
    """Give the findings of a decorated sentence function the rank CAUSE."""
    _RANKS[sentence] = CAUSE
    return sentence


def aside(sentence: Callable[P, str]) -> Callable[P, str]:
    """Give the findings of a decorated sentence function the rank ASIDE."""
    _RANKS[sentence] = ASIDE
    return sentence


class Finding:
    """A sentence of a report, as data: the function that writes it, and its facts."""

    __slots__ = ("facts", "part", "sentence")

    def __init__(self, sentence: Callable[P, str], /, *_: P.args, **facts: P.kwargs) -> None:
        self.sentence: Callable[..., str] = sentence
        """Function of a module named `sentences`, whose keyword arguments are the facts."""
        self.facts: Mapping[str, Any] = facts
        """Facts by name: numbers, labels, and named tuples of both.

        Times are in ns, and their names end in _ns. Shares are from 0 to 1. If the fact `unclear` is true,
        the data do not decide the question.
        """
        self.part = ""
        """Label of the part of a table to which the finding applies; empty for the whole table."""

    @property
    def code(self) -> str:
        """Name of the kind of finding in JSON reports, such as "best". New versions keep the name."""
        return code_of(self.sentence)

    @property
    def rank(self) -> int:
        """Rank of the sentence, for the order of display: GRAVE, CAUSE, USUAL or ASIDE."""
        return _RANKS.get(self.sentence, USUAL)

    @property
    def text(self) -> str:
        """English sentence, preceded by a label in brackets if the finding is on a part of a table."""
        text = self.sentence(**self.facts)
        return f"[{self.part}] {text}" if self.part else text

    def with_part(self, part: str) -> Finding:
        """Return a copy of this finding with the label of the part of the table that it is on."""
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
    """Return the code of a sentence function: its name with dashes for underscores, such as "data-wrong"."""
    return sentence.__name__.rstrip("_").replace("_", "-")


def texts(findings: Iterable[Finding]) -> list[str]:
    """Return findings as English sentences."""
    return [finding.text for finding in findings]


def is_unclear(finding: Finding) -> bool:
    """Return whether the fact `unclear` of the finding, or of a named tuple in its facts, is true."""
    return bool(finding.facts.get("unclear")) or any(map(_is_unclear, finding.facts.values()))


def _is_unclear(fact: Any) -> bool:
    return bool(getattr(fact, "unclear", False)) or (isinstance(fact, tuple) and any(map(_is_unclear, fact)))
