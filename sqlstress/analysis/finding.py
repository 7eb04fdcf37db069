"""Finding: a sentence of a report, as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec

P = ParamSpec("P")
GRAVE, USUAL, ASIDE = range(3)
"""Ranks, in the order of display: wrong data and missing measurements; conclusions; limits of the figures."""
_RANKS: dict[Callable[..., str], int] = {}


def grave(sentence: Callable[P, str]) -> Callable[P, str]:
    """Give a sentence the rank GRAVE."""
    _RANKS[sentence] = GRAVE
    return sentence


def aside(sentence: Callable[P, str]) -> Callable[P, str]:
    """Give a sentence the rank ASIDE."""
    _RANKS[sentence] = ASIDE
    return sentence


class Finding:
    """A sentence of a report, as data: the function that writes it, and its facts."""

    __slots__ = ("facts", "part", "sentence")

    def __init__(self, sentence: Callable[P, str], /, *_: P.args, **facts: P.kwargs) -> None:
        self.sentence: Callable[..., str] = sentence
        """A function of a module named `sentences`. Its parameters are the facts."""
        self.facts: Mapping[str, Any] = facts
        """Numbers, labels, and named tuples of them, by name. Names of times end in _ns; shares are from 0 to
        1. If the fact `unclear` is true, the data do not decide the question."""
        self.part = ""
        """Part of a group that the finding is about, such as "synchronous normal"; empty for all of it."""

    @property
    def code(self) -> str:
        """Stable name, such as "best" or "starvation"."""
        return code_of(self.sentence)

    @property
    def rank(self) -> int:
        """GRAVE, USUAL or ASIDE."""
        return _RANKS.get(self.sentence, USUAL)

    @property
    def text(self) -> str:
        """The finding as an English sentence."""
        text = self.sentence(**self.facts)
        return f"[{self.part}] {text}" if self.part else text

    def with_part(self, part: str) -> Finding:
        """Return this finding about a part of a group."""
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
    """Return the code of a sentence: its name with dashes."""
    return sentence.__name__.rstrip("_").replace("_", "-")


def texts(findings: Iterable[Finding]) -> list[str]:
    """Return findings as English sentences."""
    return [finding.text for finding in findings]


def is_unclear(finding: Finding) -> bool:
    """Return whether the data cannot tell: `unclear` is true of the finding or of a named tuple in it."""
    return bool(finding.facts.get("unclear")) or any(map(_is_unclear, finding.facts.values()))


def _is_unclear(fact: Any) -> bool:
    return bool(getattr(fact, "unclear", False)) or (isinstance(fact, tuple) and any(map(_is_unclear, fact)))
