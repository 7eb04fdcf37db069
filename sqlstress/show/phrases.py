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
from contextlib import suppress
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


SAMPLE: Mapping[str, Any] = {
    "a": "A", "b": "B", "of": "A", "letter": "B", "sides": ("sqlite", "postgres"), "side": "postgres",
    "other": "sqlite", "setting": "synchronous", "value": "normal", "base": "full", "usual": "ext4",
    "host": "build-2", "best": "build-7", "median": "build-3", "worst": "build-2", "subject": "file system",
    "where": "8 processes on 1 file", "elsewhere": "8 processes on 20 files", "layout": "20 files",
    "name": "last writes", "checks": ("rows",), "checked": 500, "problems": 2, "note": "a worker died",
    "example": "key 7 has no value", "examples": ("key 7 has no value",), "reason": "the disk is full",
    "progress": "3 of 100 rounds", "rounds": "3 of 100 rounds", "worth": "every commit synced", "cases": 12,
    "count": 12, "enough": 5, "hosts": 9, "passes": 5, "planned": 24, "processes": 8, "repeat": 5,
    "trials": 12, "share": 0.1, "low": 0.8, "high": 1.1, "times": 0.84, "ratio": Ratio(3.1, 2.9, 3.4, 5),
    "ratios": ("0.84 times A's transactions per second",), "tau": -0.81, "unit": "transactions per second",
    "rate": 5960.0, "most": 9210.0, "least": 4390.0, "base_rate": 500, "base_ns": 310_000,
    "p99_ns": 900_000, "late_ns": 120_000, "longest_ns": 3.4e9, "own_ns": 4e6, "usual_ns": 3e5,
    "timeout": "5s", "fairness": 0.31, "server": "db.example:5432", "noise": "5 passes are too noisy",
    "can_be_set": True, "several": False, "equal": False, "lead": False, "skipped": False, "too_few": None,
    "took_part": None, "unknown": None,
}  # fmt: skip
"""Facts with which a phrase is read that has none of its own of the same name."""


GRAVE, USUAL, ASIDE = range(3)
"""Ranks: wrong data, and what was not measured or proved; conclusions; how far the figures can be trusted."""


class Phrase:
    """A template, its rank, and facts with which it can be read: those that SAMPLE lacks or has otherwise."""

    def __init__(self, template: str, rank: int = USUAL, **facts: Any) -> None:
        self.template, self.rank, self.facts = template, rank, facts

    def fields(self) -> set[str]:
        """Return the names of the facts in it."""
        return {token["name"] for token in _TOKEN.finditer(self.template) if token["name"]}

    @property
    def sample(self) -> Mapping[str, Any]:
        """Return facts with which it can be read."""
        return {**{name: SAMPLE[name] for name in self.fields() - set(self.facts)}, **self.facts}

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
    return wording.whole(fact) if isinstance(fact, int) else wording.rounded(fact)


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
    "or": lambda facts: wording.listing(list(map(written, facts)), "or"),
    "counts": lambda counts: wording.listing(
        [f"{what} ({wording.whole(count)})" for what, count in counts.items()]
    ),
    "compared": _compared,
    "relative": _relative,
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


def sampled(templates: Mapping[str, str | Phrase], **facts: Any) -> dict[str, Phrase]:
    """Return phrases by code that can be read with facts that several of them share."""
    known = {}
    for code, template in templates.items():
        own = Phrase(template) if isinstance(template, str) else template
        shared = {name: facts[name] for name in own.fields() & facts.keys()}
        known[code] = Phrase(own.template, own.rank, **{**shared, **own.facts})
    return known


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


def rank(finding: Finding) -> int:
    """Return how early a finding is shown: GRAVE, USUAL or ASIDE."""
    return phrases()[finding.code].rank


if __name__ == "__main__":
    with suppress(BrokenPipeError):  # the reader, such as head, has seen enough
        for code, template in phrases().items():
            print(f"{code}\n    {template.filled(template.sample)}", flush=True)  # noqa: T201
