"""Phrases: the one place where a finding becomes an English sentence.

A phrase is a template over the facts of a finding. It has no logic beyond these marks:

    {name}           a fact, written by its type
    {name:percent}   a fact, written by one of FORMATS; an argument may follow: {count:plural pass}
    {name?yes|no}    the first text where the fact is true (of a number: above 0), else the second
    [ of {name}]     a part that is left out where a fact that it writes is missing (None, False or empty)

`[[` and `]]` are brackets. After `^` at the beginning the sentence begins with a capital, whichever part it
is of. `show.phrasebook` has the phrases that all share, and an experiment its own in a module
`phrases` of its folder. `python -m sqlstress.show.phrases` prints every phrase with sample facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from sqlstress.analysis import wording
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import EQUAL
from sqlstress.registry import EXPERIMENTS
from sqlstress.statistics import units
from sqlstress.statistics.compare import Ratio
from sqlstress.statistics.units import format_duration, format_ms

_FIELD = r"\{(?P<name>\w+)(?::(?P<format>[^{}]*)|\?(?P<yes>[^{}|]*)\|(?P<no>[^{}]*))?\}"
_TOKEN = re.compile(rf"(?P<literal>\[\[|\]\])|(?P<open>\[)|(?P<close>\])|{_FIELD}|(?P<text>[^\[\]{{]+)")


GRAVE, USUAL, ASIDE = range(3)
"""Ranks: wrong data, and what was not measured or proved; conclusions; how far the figures can be trusted."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A template, and its rank."""

    template: str
    rank: int = USUAL

    def filled(self, facts: Mapping[str, Any]) -> str:
        """Return the sentence with these facts."""
        text, _ = _filled(_TOKEN.finditer(self.template.removeprefix("^")), facts)
        return _capital(text) if self.template.startswith("^") else text

    def with_samples(self) -> str:
        """Return the template with a sample of each fact; what it may leave out stays marked."""
        return re.sub(_FIELD, _sample, self.template.removeprefix("^"))


def _sample(field: re.Match[str]) -> str:
    """Return what stands for a field: a number where its format wants one, else a text that its name has."""
    if field["yes"] is not None:
        return f"{{{field['yes']}|{field['no']}}}"
    kind = (field["format"] or "").partition(" ")[0]
    if kind in NUMBERS:
        return _field(field, NUMBERS[kind])
    return SAMPLE.get(field["name"], field["name"].upper())


def _filled(tokens: Iterator[re.Match[str]], facts: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the text up to the end of a part, and whether a fact of its own is missing."""
    text, missing = "", False
    for token in tokens:
        if token["close"]:
            break
        if token["open"]:
            part, left_out = _filled(tokens, facts)
            text += "" if left_out else part
        elif token["name"]:
            fact = facts.get(token["name"])
            lacking = token["yes"] is None and _is_missing(fact)
            missing = missing or lacking
            text += "" if lacking else _field(token, fact)
        else:
            text += token["text"] or token["literal"][0]
    return text, missing


def _is_missing(fact: Any) -> bool:
    return fact is None or fact is False or fact in ("", (), [])


def _field(token: re.Match[str], fact: Any) -> str:
    if token["yes"] is not None:
        counts = isinstance(fact, int | float)
        return str(token["no"] if _is_missing(fact) or (counts and fact <= 0) else token["yes"])
    kind, _, argument = (token["format"] or "").partition(" ")
    if not kind:
        return written(fact)
    return FORMATS[kind](fact, argument) if argument else FORMATS[kind](fact)


def written(fact: Any) -> str:
    """Return a fact as it stands in a sentence when the phrase asks for no format."""
    if isinstance(fact, Finding):
        return phrase(fact)
    if isinstance(fact, str):
        return fact
    if isinstance(fact, Ratio):
        return wording.between(fact)
    if isinstance(fact, (tuple, list)):
        return wording.listing(list(map(written, fact)))
    return units.whole(fact) if isinstance(fact, int) else units.rounded(fact)


def _compared(ratio: Ratio, what: str) -> str:
    """Write how one figure compares: "1.9 times as fast (1.8 to 2.0)", "about as fast"."""
    interval = "" if ratio.is_within(EQUAL) else f" ({wording.between(ratio)})"
    return f"{_relative(ratio, what)}{interval}"


def _relative(ratio: Ratio, what: str) -> str:
    """Write the same without its interval: "1.9 times as fast", "about as fast"."""
    return f"about {what}" if ratio.is_within(EQUAL) else f"{wording.times(ratio.estimate)} {what}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _joined(separator: str, facts: Any) -> str:
    return separator.join(map(written, facts))


def _change(change: float, than: str) -> str:
    """Write a relative change: "20% slower than", "2.5 times as fast as"."""
    if change >= 1:
        return f"{wording.times(1 + change)} as fast as"
    return f"{wording.percent(abs(change))} {'faster' if change > 0 else 'slower'} {than}"


FORMATS: Mapping[str, Callable[..., str]] = {
    "percent": wording.percent,
    "signed": wording.signed,
    "times": wording.times,
    "duration": wording.duration,
    "size": wording.size,
    "rounded": units.rounded,
    "whole": units.whole,
    "plain": str,
    "plural": units.plural,
    "processes": wording.processes,
    "files": wording.buckets,
    "faster": _change,
    "or": lambda facts: wording.listing(list(map(written, facts)), "or"),
    "counts": lambda counts: wording.listing(
        [f"{what} ({units.whole(count)})" for what, count in counts.items()]
    ),
    "compared": _compared,
    "relative": _relative,
    "fixed": lambda number, digits: f"{number:.{digits}f}",
    "seconds": format_duration,
    "ms": format_ms,
    "estimate": lambda ratio: wording.times(ratio.estimate),
    "two": lambda number: units.rounded(number, 2),
    "capital": lambda fact: _capital(written(fact)),
    "quoted": lambda counts: "; ".join(f'"{what}" ({units.whole(count)})' for what, count in counts.items()),
    "semicolons": partial(_joined, "; "),
    "sentences": partial(_joined, " "),
    "commas": partial(_joined, ", "),
}
"""How a fact can be written: name → function of the fact, and of the argument if there is one."""


SAMPLE: Mapping[str, str] = {
    "a": "A", "b": "B", "of": "A", "letter": "B", "arm": "B", "side": "postgres", "other": "sqlite",
    "sides": "sqlite and postgres", "setting": "synchronous", "value": "normal", "base": "full",
    "where": "8 processes on 1 bucket", "elsewhere": "8 processes on 20 buckets", "layout": "20 buckets",
    "name": "last writes", "problems": "2", "checked": "500", "example": "key 7 has no value",
    "reason": "the disk is full", "progress": "3 of 100 rounds", "rounds": "3 of 100 rounds",
    "count": "12", "cases": "12", "passes": "5", "repeat": "5", "planned": "24", "rate": "2,000",
    "unit": "transactions", "ratio": "2.9 to 3.4", "enough": "25",
    "timeout": "5s", "noise": "5 passes cannot show a difference of 10%",
    "transaction": "transfer", "table": "account", "first_at": "bank.py:27", "then_at": "bank.py:28",
    "first": "SELECT balance FROM account WHERE id = 5",
    "then": "UPDATE account SET balance = 990 WHERE id = 5",
}  # fmt: skip
"""Facts with which a phrase is read, by name; of another one its name is read."""
_RATIO = Ratio(3.1, 2.9, 3.4, 5)
NUMBERS: Mapping[str, Any] = {
    "percent": 0.1, "signed": 1.12, "times": 2.1, "duration": 3.4e9, "size": 85_000_000, "rounded": 5960.0,
    "whole": 2000, "plain": 5, "plural": 12, "processes": 8, "files": 20, "faster": -0.2, "compared": _RATIO,
    "relative": _RATIO, "estimate": _RATIO, "fixed": 0.81, "seconds": 2.0, "ms": 3e5,
    "two": 0.31,
}  # fmt: skip
"""The same of facts that are numbers, by format."""


@cache
def phrases() -> Mapping[str, Phrase]:
    """Return all phrases by code: the shared ones, and those of each experiment."""
    packages = dict.fromkeys(target.rpartition(".")[0] for target in EXPERIMENTS.values())
    modules = [f"{package}.phrases" for package in packages if find_spec(f"{package}.phrases")]
    known: dict[str, Phrase] = {}
    for module in ("sqlstress.show.phrasebook", *modules):
        known.update(vars(import_module(module))["PHRASES"])
    return known


def phrase(finding: Finding) -> str:
    """Return a finding as an English sentence."""
    text = phrases()[finding.code].filled(finding.facts)
    return f"[{finding.part}] {text}" if finding.part else text


def sentences(findings: Iterable[Finding]) -> str:
    """Return findings as sentences, one after the other."""
    return " ".join(map(phrase, findings))


def rank(finding: Finding) -> int:
    """Return how early a finding is shown: GRAVE, USUAL or ASIDE."""
    return phrases()[finding.code].rank


if __name__ == "__main__":
    with suppress(BrokenPipeError):  # the reader, such as head, has seen enough
        for code, template in phrases().items():
            print(f"{code}\n    {template.with_samples()}", flush=True)  # noqa: T201
