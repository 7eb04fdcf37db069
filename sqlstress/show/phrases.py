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
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from sqlstress.analysis import wording
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import EQUAL
from sqlstress.experiment import EXPERIMENTS
from sqlstress.statistics.compare import Ratio
from sqlstress.statistics.units import format_duration, format_ms

_FIELD = r"\{(?P<name>\w+)(?::(?P<format>[^{}]*)|\?(?P<yes>[^{}|]*)\|(?P<no>[^{}]*))?\}"
_TOKEN = re.compile(rf"(?P<literal>\[\[|\]\])|(?P<open>\[)|(?P<close>\])|{_FIELD}|(?P<text>[^\[\]{{]+)")


class Phrase:
    """A template, and facts with which it can be read."""

    def __init__(self, template: str, **sample: Any) -> None:
        self.template = template
        self.sample = sample

    def fields(self) -> set[str]:
        """Return the names of the facts in it."""
        return {found["name"] for found in _TOKEN.finditer(self.template) if found["name"]}

    def filled(self, facts: Mapping[str, Any]) -> str:
        """Return the sentence with these facts."""
        text, _ = _filled(_TOKEN.finditer(self.template.removeprefix("^")), facts)
        return _capital(text) if self.template.startswith("^") else text


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
            missing = missing or (_is_missing(fact) and token["yes"] is None)
            text += "" if _is_missing(fact) and token["yes"] is None else _field(token, fact)
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
        return wording.listing([written(one) for one in fact])
    return wording.whole(fact) if isinstance(fact, int) else wording.rounded(fact)


def _compared(ratio: Ratio, what: str) -> str:
    """Write how one figure compares: "1.9 times (1.8 to 2.0) as fast", "about as fast"."""
    if ratio.is_within(EQUAL):
        return f"about {what}"
    return f"{wording.times(ratio.estimate)} ({wording.between(ratio)}) {what}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _joined(separator: str, facts: Any) -> str:
    return separator.join(written(one) for one in facts)


def _change(change: float, than: str) -> str:
    """Write a relative change: "20% slower than", "2.5 times as fast as"."""
    if change >= 1:
        return f"{wording.times(1 + change)} as fast as"
    return f"{wording.percent(abs(change))} {'faster' if change > 0 else 'slower'} {than}"


FORMATS: Mapping[str, Callable[..., str]] = {
    "percent": wording.percent,
    "times": wording.times,
    "duration": wording.duration,
    "size": wording.size,
    "rounded": wording.rounded,
    "whole": wording.whole,
    "plain": str,
    "plural": wording.plural,
    "processes": wording.processes,
    "files": wording.files,
    "faster": _change,
    "or": lambda facts: wording.listing([written(one) for one in facts], "or"),
    "counts": lambda counts: wording.listing(
        [f"{what} ({wording.whole(count)})" for what, count in counts.items()]
    ),
    "compared": _compared,
    "gain": wording.told,
    "interval": wording.interval,
    "fixed": lambda number, digits: f"{number:.{digits}f}",
    "seconds": format_duration,
    "ms": format_ms,
    "estimate": lambda gain: wording.times(gain.estimate if isinstance(gain, Ratio) else gain.ratio),
    "two": lambda number: wording.rounded(number, 2),
    "capital": lambda fact: _capital(written(fact)),
    "quoted": lambda counts: "; ".join(
        f'"{what}" ({wording.whole(count)})' for what, count in counts.items()
    ),
    "semicolons": partial(_joined, "; "),
    "sentences": partial(_joined, " "),
    "commas": partial(_joined, ", "),
}
"""How a fact can be written: name → function of the fact, and of the argument if there is one."""


@cache
def phrases() -> Mapping[str, Phrase]:
    """Return all phrases by code: the shared ones, and those of each experiment."""
    found: dict[str, Phrase] = {}
    for module in ("sqlstress.show.phrasebook", *_modules()):
        found.update(vars(import_module(module))["PHRASES"])
    return found


def _modules() -> Iterator[str]:
    packages = dict.fromkeys(target.rpartition(".")[0] for target in EXPERIMENTS.values())
    yield from (f"{package}.phrases" for package in packages if find_spec(f"{package}.phrases"))


def phrase(finding: Finding) -> str:
    """Return a finding as an English sentence."""
    text = phrases()[finding.code].filled(finding.facts)
    return f"[{finding.part}] {text}" if finding.part else text


if __name__ == "__main__":
    for code, one in phrases().items():
        print(f"{code}\n    {one.filled(one.sample)}")  # noqa: T201
