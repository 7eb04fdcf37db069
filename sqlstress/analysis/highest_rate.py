"""The highest rate that holds a promise: what each window says of it, and what all of them say together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sqlstress.analysis.scaling import SATURATED, saturation
from sqlstress.analysis.wording import listing, plural, whole
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
    """Return what of a promise a window broke, as a column names it; nothing if the window kept all of it."""
    latency = trial.arrived.whole if trial.arrived else None
    if latency is None:
        return ("nothing due",)
    found = ["failures"] * bool(trial.failed)
    found += ["saturated"] * (saturation([trial], ERROR) == SATURATED)
    for name, bound in promise.bounds.items():
        ns = latency.max_ns if name == "max" else histogram.percentile(dict(latency.buckets), SHARES[name])
        if ns is None or ns > bound * NS_PER_S:
            found.append(name)
    return tuple(found)


def tried(report: Report, search: LimitSearch) -> tuple[Tried, ...]:
    """Return the rates that were tried, in ascending order."""
    runs = sorted((run for run in report.runs if run.case.rate), key=lambda run: run.case.rate)
    return tuple(
        Tried(run.case.rate, run, tuple(not broken(trial, search.promise) for trial in run.valid))
        for run in runs
    )


def answered(report: Report, search: LimitSearch) -> Answer:
    """Return the highest rate that holds, and the lowest that does not, as far as they are known."""
    return answer({rate.rate: rate.kept for rate in tried(report, search) if rate.kept})


def is_whole(found: Answer) -> bool:
    """Say whether both ends of the answer are known; a promise that not even one a second holds has none."""
    return found.breaks is not None and (found.holds is not None or found.breaks == 1)


def conclusion(report: Report, search: LimitSearch) -> str:
    """Return the answer, in a few sentences: what holds, what does not, and what can't be told."""
    rates, found = tried(report, search), answered(report, search)
    measured = [rate for rate in rates if rate.kept]
    ended = f"It ended early: {search.ended.removesuffix('.')}." if search.ended else ""
    if found.holds is None and found.breaks is None:
        sentences = [_nothing(measured, search), ended]
    else:
        sentences = [
            _ends(found, rates, search),
            *_beside(found, measured),
            "" if is_whole(found) else ended,
            _too_few(found, rates, search.promise),
        ]
    return " ".join(filter(None, sentences))


def _nothing(rates: Sequence[Tried], search: LimitSearch) -> str:
    """Say that neither end is known, and between which rates both lie."""
    said = f"Cannot tell which rate holds {promised(search.promise)}"
    if not rates:
        return f"{said}: no window was measured."
    low = next((rate for rate in reversed(rates) if all(rate.kept)), None)
    high = next((rate for rate in rates if not any(rate.kept)), None)
    if low and high and low.rate < high.rate:
        return f"{said} between {whole(low.rate)}/s and {whole(high.rate)}/s: {_counts([low, high])}."
    where = f"from {whole(rates[0].rate)}/s to {whole(rates[-1].rate)}/s"
    return f"{said}: {plural(len(rates), 'rate')} {where} tried, but none is decided."


def _ends(found: Answer, rates: Sequence[Tried], search: LimitSearch) -> str:
    """Say which ends of the answer are known, and of the other one as far as it was looked for."""
    windows = {rate.rate: len(rate.kept) for rate in rates}
    what, held, not_held = promised(search.promise), found.holds, found.breaks
    if held is not None and not_held is not None:
        first = f"Holds {whole(held)}/s: {what} in all {windows[held]} windows."
        return f"{first} Does not hold {whole(not_held)}/s: in none of {windows[not_held]} windows."
    if held is not None:
        top = max(rate.rate for rate in rates if rate.kept)
        holds = f"Holds {whole(held)}/s: {what} in all {windows[held]} windows."
        return (
            f"{holds} Rates up to {whole(top)}/s were tried: cannot tell from which rate on it does not hold."
        )
    assert not_held is not None
    breaks = f"Does not hold {whole(not_held)}/s: {what} in none of {windows[not_held]} windows."
    if not_held == 1:
        return f"{breaks} Less than one operation per second was not tried."
    return (
        f"{breaks} Rates down to {whole(rates[0].rate)}/s were tried: cannot tell whether a lower rate holds."
    )


def _beside(found: Answer, rates: Sequence[Tried]) -> Iterator[str]:
    """Yield what was seen between the ends of the answer, and which rates below did not always hold."""
    low, high = found.holds or 0, found.breaks or math.inf
    if between := [rate for rate in rates if low < rate.rate < high]:
        said = "Between them, cannot tell:" if found.holds and found.breaks else "Also,"
        yield f"{said} {_counts(between)}."
    if below := [rate for rate in rates if rate.rate < low and not all(rate.kept)]:
        yield f"Below it, {_counts(below)}."


def _too_few(found: Answer, rates: Sequence[Tried], promise: Promise) -> str:
    """Say of which percentile the windows that kept a promise show little: one operation in so many."""
    name = max((name for name in promise.bounds if name in SHARES), key=lambda name: SHARES[name], default="")
    if not name or found.holds is None:
        return ""
    needed = round(1 / (1 - SHARES[name]))
    trials = (trial for rate in rates if rate.rate == found.holds for trial in rate.run.valid)
    fewest = min(
        (trial.arrived.whole.count for trial in trials if trial.arrived and trial.arrived.whole),
        default=needed,
    )
    if fewest >= needed:
        return ""
    return (
        f"A window of {plural(fewest, 'operation')} says little about {name}, which is one in "
        f"{whole(needed)}: use a longer --duration."
    )


def _counts(rates: Sequence[Tried]) -> str:
    """Write how many windows kept the promise at each of some rates."""
    return listing(
        [
            f"at {whole(rate.rate)}/s {sum(rate.kept)} of {plural(len(rate.kept), 'window')} kept it"
            for rate in rates
        ]
    )
