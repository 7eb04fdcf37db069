"""The highest rate that holds a promise: what each window says of it, and what all of them say together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sqlstress.analysis.scaling import SATURATED, achieved, saturation
from sqlstress.analysis.wording import duration, listing, percent, plural, whole
from sqlstress.report import Report, Run, Trial
from sqlstress.report.study_results import LimitSearch, Promise
from sqlstress.statistics import histogram
from sqlstress.statistics.search import Answer, answer, verdict
from sqlstress.statistics.units import NS_PER_S, format_duration

ERROR = 0.01
"""With this probability at most a window that kept up is said to be saturated."""
SHARES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}


class Tried(NamedTuple):
    """A rate that was tried."""

    rate: int
    run: Run
    kept: tuple[bool, ...]
    """Of each valid window, whether it kept the promise."""

    @property
    def verdict(self) -> str:
        """What is known of it."""
        return verdict(self.kept)


def promised(promise: Promise) -> str:
    """Write what is promised: "p99 within 10ms"."""
    return listing([f"{name} within {format_duration(bound)}" for name, bound in promise.bounds.items()])


def broken(trial: Trial, promise: Promise) -> tuple[str, ...]:
    """Return what of a promise a window broke, in words; nothing of one that kept all of it."""
    return tuple(_broken(trial, promise))


def _broken(trial: Trial, promise: Promise) -> Iterator[str]:
    latency = trial.arrived.whole if trial.arrived else None
    if latency is None:
        yield "nothing was due"
        return
    if trial.failed:
        yield f"{plural(trial.failed, 'operation')} failed"
    if saturation([trial], ERROR) == SATURATED:
        yield f"{percent(achieved([trial]) or 0.0)} of what was due was done"
    for name, bound in promise.bounds.items():
        ns = latency.max_ns if name == "max" else histogram.percentile(dict(latency.buckets), SHARES[name])
        if ns is None or ns > bound * NS_PER_S:
            yield f"{name} was {duration(ns or 0.0)}"


def tried(report: Report, search: LimitSearch) -> tuple[Tried, ...]:
    """Return the rates that were tried, in ascending order."""
    found = [
        Tried(run.case.rate, run, tuple(not broken(one, search.promise) for one in run.valid))
        for run in report.runs
        if run.case.rate
    ]
    return tuple(sorted(found, key=_rate))


def answered(report: Report, search: LimitSearch) -> Answer:
    """Return the highest rate that holds, and the lowest that does not, as far as they are known."""
    return answer({one.rate: one.kept for one in tried(report, search) if one.kept})


def is_whole(found: Answer) -> bool:
    """Say whether both ends of the answer are known; a promise that not even one a second holds has none."""
    return found.breaks is not None and (found.holds is not None or found.breaks == 1)


def conclusion(report: Report, search: LimitSearch) -> str:
    """Return the answer, in a few sentences: what holds, what does not, and what can't be told."""
    rates, found = tried(report, search), answered(report, search)
    if found.holds is None and found.breaks is None:
        return " ".join(filter(None, (_nothing(rates, search), _ended(search))))
    sentences = [_ends(found, rates, search)]
    if found.holds is None or found.breaks is None:
        sentences.append(_one_end(found, rates))
    sentences += [text for text in (_between(found, rates), _below(found, rates)) if text]
    if not is_whole(found) and (why := _ended(search)):
        sentences.append(why)
    if few := _too_few(found, rates, search.promise):
        sentences.append(few)
    return " ".join(sentences)


def _nothing(rates: Sequence[Tried], search: LimitSearch) -> str:
    """Say that neither end is known, and between which rates both lie."""
    said = f"Which rate holds {promised(search.promise)} can't be told"
    low = max((one for one in rates if one.kept and all(one.kept)), key=_rate, default=None)
    high = min((one for one in rates if one.kept and not any(one.kept)), key=_rate, default=None)
    if low and high and low.rate < high.rate:
        return f"{said} between {whole(low.rate)}/s and {whole(high.rate)}/s: {_counts([low, high])}."
    measured = [one for one in rates if one.kept]
    if not measured:
        return f"{said}: no window was measured."
    where = f"from {whole(measured[0].rate)}/s to {whole(measured[-1].rate)}/s"
    return f"{said}: {plural(len(measured), 'rate')} {where} tried, and none is decided."


def _ends(found: Answer, rates: Sequence[Tried], search: LimitSearch) -> str:
    windows = {one.rate: len(one.kept) for one in rates}
    what, held, not_held = promised(search.promise), found.holds, found.breaks
    if held is not None and not_held is not None:
        rate, other = whole(held), whole(not_held)
        of_all = f"in all {windows[held]} windows at the one, in none of {windows[not_held]} at the other"
        return f"Holds {rate}/s, does not hold {other}/s: {what} {of_all}."
    if held is not None:
        return f"Holds {whole(held)}/s: {what} in all {windows[held]} windows."
    assert not_held is not None
    return f"Does not hold {whole(not_held)}/s: {what} in none of {windows[not_held]} windows."


def _too_few(found: Answer, rates: Sequence[Tried], promise: Promise) -> str:
    """Say of which percentile the windows that kept a promise show little: one operation in so many."""
    name = max((name for name in promise.bounds if name in SHARES), key=lambda name: SHARES[name], default="")
    if not name or found.holds is None:
        return ""
    needed = round(1 / (1 - SHARES[name]))
    trials = (trial for one in rates if one.rate == found.holds for trial in one.run.valid)
    counts = (one.arrived.whole.count for one in trials if one.arrived and one.arrived.whole)
    fewest = min(counts, default=needed)
    if fewest >= needed:
        return ""
    return (
        f"A window of {plural(fewest, 'operation')} shows little of {name}, which is one in {whole(needed)}: "
        "give a longer --duration."
    )


def _one_end(found: Answer, rates: Sequence[Tried]) -> str:
    if found.breaks is None:
        top = max((one.rate for one in rates if one.kept), default=0)
        return f"From which rate on it does not hold can't be told up to {whole(top)}/s."
    if found.breaks == 1:
        return "Less than one operation a second was not tried."
    return f"Whether a lower rate holds can't be told down to {whole(rates[0].rate)}/s."


def _between(found: Answer, rates: Sequence[Tried]) -> str:
    """Say what was seen between the ends of the answer."""
    low, high = found.holds or 0, found.breaks or 1 << 62
    inner = [one for one in rates if one.kept and low < one.rate < high]
    return (
        f"Between them it can't be told: {_counts(inner)}."
        if inner and found.holds and found.breaks
        else (f"Besides, {_counts(inner)}." if inner else "")
    )


def _below(found: Answer, rates: Sequence[Tried]) -> str:
    """Say which rates below the one that holds broke the promise all the same, now and then."""
    inner = [one for one in rates if found.holds and one.rate < found.holds and not all(one.kept)]
    return f"Below it, {_counts(inner)}." if inner else ""


def _counts(rates: Sequence[Tried]) -> str:
    """Write how many windows kept the promise at each of some rates."""
    return listing(
        [
            f"at {whole(one.rate)}/s {sum(one.kept)} of {plural(len(one.kept), 'window')} kept it"
            for one in rates
        ]
    )


def _ended(search: LimitSearch) -> str:
    return f"It ended early: {search.ended.removesuffix('.')}." if search.ended else ""


def _rate(one: Tried) -> int:
    return one.rate
