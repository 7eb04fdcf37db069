"""Phrases: the one place where a finding becomes an English sentence.

A phrase is a template over the facts of a finding. It has no logic beyond these marks:

    {name}           a fact, written by its type
    {name:percent}   a fact, written by one of FORMATS; an argument may follow: {count:plural pass}
    {name?yes|no}    the first text where the fact is true (of a number: above 0), else the second
    [ of {name}]     a part that is left out where a fact that it writes is missing (None, False or empty)

`[[` and `]]` are brackets. After `^` at the beginning the sentence begins with a capital, whichever part it
is of. An experiment has its own phrases in a module `phrases` of its folder, in the same
form. `python -m sqlstress.show.phrases` prints every phrase with sample facts.
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
from sqlstress.statistics.ratios import Ratio

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
    "estimate": lambda gain: wording.times(gain.estimate if isinstance(gain, Ratio) else gain.ratio),
    "two": lambda number: wording.rounded(number, 2),
    "capital": lambda fact: _capital(written(fact)),
    "quoted": lambda counts: "; ".join(
        f'"{what}" ({wording.whole(count)})' for what, count in counts.items()
    ),
    "semicolons": partial(_joined, "; "),
    "commas": partial(_joined, ", "),
}
"""How a fact can be written: name → function of the fact, and of the argument if there is one."""

PHRASES: dict[str, Phrase] = {
    # What went wrong, and what could not be measured.
    "data-wrong": Phrase(
        "FAILED at {where}: {checks:semicolons}.",
        where="4 processes on 20 files",
        checks=(Finding("check-failed", "last writes, 2 of 500 wrong (key 7 has no value)"),),
    ),
    "check-failed": Phrase(
        "{name}[, {problems}[ of {checked}] wrong][, in {failed} of {passes} passes]"
        "[ ({examples:semicolons})]",
        name="last writes",
        problems=2,
        checked=500,
        failed=1,
        passes=5,
        examples=("key 7 has no value",),
    ),
    "data-wrong-elsewhere": Phrase(
        "FAILED at {where} too: the JSON report has the counter-examples.", where="8 processes on 20 files"
    ),
    "counterexamples": Phrase(
        "{name}: {examples:semicolons}.", name="acknowledged", examples=("transaction 7 of worker 1 is gone",)
    ),
    "study-wrong": Phrase(
        "FAILED: the data is not what its processes were told it is: {example}.", example="key 7 has no value"
    ),
    "ended-early": Phrase(
        "Ended {rounds?after|early}[ {rounds}]: {reason}.",
        rounds="3 of 100 rounds",
        reason="the disk is full",
    ),
    "case-failed": Phrase(
        "Not measured at {where}: {reason}.", where="8 processes", reason="the disk is full"
    ),
    "case-incomplete": Phrase(
        "Not wholly measured at {where}: {reason}.", where="8 processes", reason="a worker died"
    ),
    "interrupted": Phrase(
        "Interrupted[ after {progress}]: what was found by then is reported.", progress="3 of 100 rounds"
    ),
    "interrupted-cases": Phrase(
        "Interrupted: {cases} of {planned} planned cases are reported, with {trials:plural trial}.",
        cases=3,
        planned=8,
        trials=12,
    ),
    # What is best.
    "highest": Phrase(
        "Too few trials to tell which is best; the highest was {rate:rounded} {unit} a second, with {where}. "
        "[Let all {repeat} passes finish][Measure with --repeat {enough}].",
        rate=5960.0,
        unit="transactions",
        where="3 processes on 20 files",
        repeat=None,
        enough=5,
    ),
    "best": Phrase(
        "Best: {about?about |}{rate:rounded}[ to {most:rounded}] {unit} a second, with {where}"
        "{equal?, which are about equal|}{unclear?, which can't be told apart|}.",
        rate=5960.0,
        most=6120.0,
        about=False,
        unit="transactions",
        where="3 and 4 processes on 20 files",
        equal=False,
        unclear=True,
    ),
    # How the total grows with processes and files.
    "still-rising": Phrase(
        "^[On {where} ]the total still rose at the most that was measured, {most:processes}: try more with "
        "--concurrency.",
        where="20 files",
        most=8,
    ),
    "plateau": Phrase(
        "^[On {where} ]more than {enough:processes} gained less than {share:percent}"
        "[, and {most:processes} reached only {fall:compared the best}]"
        "[; whether more than {unclear} gained anything can't be told].",
        where="1 file",
        enough=3,
        share=0.1,
        most=8,
        fall=Ratio(0.4, 0.34, 0.47, 5),
        unclear=2,
    ),
    "scaling-unclear": Phrase(
        "^[On {where} ][more than {less:processes} gained something; ]"
        "{anything?whether it pays to have |}more than {first:processes} "
        "{anything?can't be told|}[gained at most {most:percent}, if anything]: {noise}.",
        where="1 file",
        less=1,
        first=2,
        most=0.4,
        anything=False,
        noise=Finding("noise", passes=5, too=None, enough=12, share=0.1),
    ),
    "layouts": Phrase(
        "Compared with {base}: {others}.",
        base="1 file",
        others=(Finding("layout-gave", layout="20 files", ratio=Ratio(3.1, 2.9, 3.4, 5), processes=8),),
    ),
    "layout-gave": Phrase(
        "{layout} gave {ratio:compared as much} at {processes:processes}",
        layout="20 files",
        ratio=Ratio(3.1, 2.9, 3.4, 5),
        processes=8,
    ),
    "layout-unclear": Phrase(
        "what {layout} gave at {processes:processes} can't be told from it ({ratio} times)",
        layout="20 files",
        ratio=Ratio(1.1, 0.8, 1.4, 5),
        processes=8,
    ),
    "starvation": Phrase(
        "Starvation at {where}: [the shares were uneven (Jain's index down to {fairness:two}; 1 is equal)]"
        "{both? and |}[an operation waited up to {longest_ns:duration}]. {remedy}",
        where="8 processes on 1 file",
        fairness=0.31,
        longest_ns=3.4e9,
        both=True,
        remedy="Try fewer processes: rows, the processor or the disk are waited for.",
    ),
    # What can't be told, and what would.
    "too-few-trials": Phrase(
        "So few trials tell no difference from noise: [let all {repeat} passes finish]"
        "[measure with --repeat {enough}].",
        repeat=None,
        enough=5,
    ),
    "noise": Phrase(
        "{passes} passes are too noisy[, and so would {too} be: measure where less else is running]"
        "[. About {enough} would tell {share:percent} (--repeat {enough})]",
        passes=5,
        too=None,
        enough=12,
        share=0.1,
    ),
    "cannot-tell": Phrase(
        "[{too_few}][Why something can't be told: {noise}.]",
        too_few=None,
        noise=Finding("noise", passes=5, too=None, enough=12, share=0.1),
    ),
    # Targets side by side.
    "not-comparable": Phrase(
        "Not comparable[: what a commit of {unknown} is worth is not known]"
        "[, since a commit is not worth the same: {worths:semicolons}]."
        "{can_be_set? Where --synchronous gives them the same, measure so.|}",
        unknown=None,
        worths=(Finding("commit-worth", sides=("sqlite", "postgres"), worth="every commit synced"),),
        can_be_set=True,
    ),
    "commit-worth": Phrase(
        "{sides}: {worth?|not known}{worth}", sides=("sqlite", "postgres"), worth="every commit synced"
    ),
    "leads": Phrase(
        "[Which of {unclear} leads can't be told. {too_few}][With {worth}: {places:semicolons}.]"
        "[ {noise:capital}.]",
        unclear=None,
        too_few=None,
        worth="every commit synced",
        places=(Finding("sides-unclear", sides=("sqlite", "postgres"), where="8 processes on 1 file"),),
        noise=None,
    ),
    "side-leads": Phrase(
        "{side} leads with {where}[ ({low:two} to {high:two} times {several?the next|}[{other}])]",
        side="postgres",
        where="8 processes on 1 file",
        low=2.1,
        high=2.5,
        other="sqlite",
        several=False,
    ),
    "sides-equal": Phrase(
        "{sides} are about equal{lead? and lead|} with {where}",
        sides=("sqlite", "postgres"),
        lead=False,
        where="4 processes on 1 file",
    ),
    "sides-unclear": Phrase(
        "which of {sides} leads with {where} can't be told",
        sides=("sqlite", "postgres"),
        where="2 processes on 1 file",
    ),
    # Which value of an option does better.
    "answer": Phrase(
        "{setting} {values:semicolons}. Measured in {unit} a second[, as the mean over {places}]."
        "[ {too_few}][ {noise}.]",
        setting="synchronous",
        values=(Finding("value-gave", value="normal", base="full", times=15.0, ratio=Ratio(15, 13, 17, 5)),),
        unit="transactions",
        places="1 and 8 processes on 1 file",
        too_few=None,
        noise=None,
    ),
    "value-gave": Phrase(
        "{value}: {times:times} {base}[ ({ratio})]",
        value="normal",
        base="full",
        times=15.0,
        ratio=Ratio(15, 13, 17, 5),
    ),
    "value-equal": Phrase(
        "{value}: about equal to {base} ({ratio} times)",
        value="normal",
        base="full",
        ratio=Ratio(1.01, 0.97, 1.05, 5),
    ),
    "value-unclear": Phrase(
        "{value}: can't be told from {base} ({ratio} times)",
        value="normal",
        base="full",
        ratio=Ratio(1.1, 0.8, 1.4, 5),
    ),
    "answer-by-place": Phrase(
        "{values:semicolons}.",
        values=(
            Finding(
                "value-by-place",
                value="normal",
                most=15.0,
                where="1 process on 1 file",
                least=2.0,
                elsewhere="8 processes on 1 file",
            ),
        ),
    ),
    "value-by-place": Phrase(
        "{value} reached {most:times} at {where} but {least:times} at {elsewhere}",
        value="normal",
        most=15.0,
        where="1 process on 1 file",
        least=2.0,
        elsewhere="8 processes on 1 file",
    ),
    # How far the figures can be trusted.
    "proof-ok": Phrase(
        "Proved in part at {where} ({checks})[: {note}].",
        where="8 processes",
        checks=("rows",),
        note="read once",
    ),
    "proof-unknown": Phrase(
        "Undecided at {where} ({checks})[: {note}].",
        where="8 processes",
        checks=("rows",),
        note="a worker died",
    ),
    "not-steady": Phrase(
        "Not steady at {where}: the second half of the window was up to {change:faster than} the first. "
        "Measure longer (--duration).",
        where="8 processes on 20 files",
        change=-0.2,
    ),
    "spread": Phrase(
        "Trials of the same case differ by up to {share:percent} ({where}).", share=0.3, where="8 processes"
    ),
    "harness-cost": Phrase(
        "The harness itself took at most {share:percent} of the processes' time (at {where}); with a store "
        "that does nothing it takes {cost_ns:duration} for each {unit}.",
        share=0.0021,
        where="2 processes on 20 files",
        cost_ns=47,
        unit="transaction",
    ),
    "proof-cost": Phrase(
        "The proof took up to {share:percent} of the window (at {where}): --verify none measures without it.",
        share=0.08,
        where="8 processes",
    ),
}


@cache
def phrases() -> Mapping[str, Phrase]:
    """Return all phrases by code: the shared ones, and those of each experiment."""
    found = dict(PHRASES)
    for module in _modules():
        found.update(vars(import_module(module))["PHRASES"])
    return found


def _modules() -> Iterator[str]:
    packages = dict.fromkeys(target.rpartition(".")[0] for target in EXPERIMENTS.values())
    yield from (f"{package}.phrases" for package in packages if find_spec(f"{package}.phrases"))


def phrase(finding: Finding) -> str:
    """Return a finding as an English sentence."""
    text = finding.said or phrases()[finding.code].filled(finding.facts)
    return f"[{finding.part}] {text}" if finding.part else text


if __name__ == "__main__":
    for code, one in phrases().items():
        print(f"{code}\n    {one.filled(one.sample)}")  # noqa: T201
