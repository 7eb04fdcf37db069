"""How the throughput grows with processes and files: only what the passes tell from their noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlstress.analysis.comparing import TOO_FEW, UNTOLD, Leaders, as_much, leaders
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import EQUAL, Group, Tested, by_files, noise
from sqlstress.analysis.wording import (
    between,
    laid_out,
    layouts,
    listing,
    percent,
    places,
    processes,
    rounded,
)
from sqlstress.experiment import face_of
from sqlstress.report import Run

WORTH_SAYING = 1.0
"""A gain of so much, if it can't be ruled out, leaves everything open."""


def throughput(group: Group) -> Iterator[Finding]:
    """Yield what the totals of a group say; nothing of one point only, nor of a rate that was asked for."""
    runs = [] if group.case.arrivals else believed(group)
    if len({(run.case.buckets, run.case.concurrency) for run in runs}) < 2:
        return
    tested = group.tested(runs)
    if tested is None:
        yield _highest(group, runs)
        return
    yield _best(group, tested, runs)
    found = curves(tested, runs)
    yield from _scalings(found)
    yield from _layouts(tested, found)


def believed(group: Group) -> list[Run]:
    """Return the runs whose figures count, and of which the number of processes is known."""
    return [run for run in group.runs if run.case.concurrency and group.is_believed(run)]


def curves(tested: Tested, runs: Sequence[Run]) -> dict[int, Curve]:
    """Return the runs of each layout, by its number of files."""
    return {
        layout: Curve(tested, own) for layout, own in by_files(runs, lambda run: run.case.buckets).items()
    }


def _highest(group: Group, runs: Sequence[Run]) -> Finding:
    best = max(runs, key=lambda run: run.median_tps() or 0.0)
    rate = rounded(best.median_tps() or 0.0)
    text = f"Highest: {rate} {group.unit} a second, with {places([best.case])}. {TOO_FEW}"
    return Finding("best", text)


def _best(group: Group, tested: Tested, runs: Sequence[Run]) -> Finding:
    lead = leaders(tested, runs)
    where = places(run.case for run in lead.runs)
    return Finding("best", f"Best: {_reached(lead)} {group.unit} a second, with {where}{lead.how}.")


def _reached(lead: Leaders) -> str:
    """Say what the leading ones reached, as the table does: of those that can't be told apart from where to
    where, since the highest figure is one of the best only."""
    medians = sorted(run.median_tps() or 0.0 for run in lead.runs)
    low, high = rounded(medians[0]), rounded(medians[-1])
    if lead.equal or low == high:
        return "about " * (len(lead.runs) > 1) + high
    return f"{low} to {high}"


@dataclass(frozen=True)
class Curve:
    """The runs of one layout."""

    tested: Tested
    measured: Sequence[Run]

    @cached_property
    def runs(self) -> list[Run]:
        """In ascending order of processes, one of each."""
        return sorted({run.case.concurrency: run for run in self.measured}.values(), key=_count)

    @cached_property
    def less(self) -> list[Run]:
        """Those at the beginning of which a larger number reaches more, beyond doubt."""
        found = []
        for place, run in enumerate(self.runs):
            if not any(self.tested.is_less(run, other) for other in self.runs[place + 1 :]):
                break
            found.append(run)
        return found

    @cached_property
    def enough(self) -> Run:
        """The fewest processes to which more of them add less than EQUAL, beyond doubt."""
        return next(
            run
            for place, run in enumerate(self.runs)
            if all(self.tested.adds_little(run, other) for other in self.runs[place + 1 :])
        )

    @property
    def most_gained(self) -> float | None:
        """The share that more processes can gain at most over the fewest that are not known to reach less."""
        first, *others = self.runs[len(self.less) :]
        ratios = [self.tested.ratio(first, other) for other in others]
        return max((ratio.high - 1 for ratio in ratios if ratio), default=None)


def _count(run: Run) -> int:
    return run.case.concurrency


def _scalings(found: Mapping[int, Curve]) -> Iterator[Finding]:
    """Yield at how many processes the totals stop rising; what is so of several layouts is said once."""
    said: dict[Finding, list[int]] = {}
    for layout, curve in found.items():
        if len(curve.runs) > 1:
            said.setdefault(_scaling(curve), []).append(layout)
    for one, own in said.items():
        if face_of(found[own[0]].runs[0].case).many_files:
            cases = [run.case for layout in own for run in found[layout].runs]
            yield Finding(one.code, f"On {layouts(own, cases)} {one.said}.")
        else:
            yield Finding(one.code, f"{one.said[0].upper()}{one.said[1:]}.")


def _scaling(curve: Curve) -> Finding:
    """Say at how many processes the total of a layout stops rising, as the end of a sentence."""
    runs, less = curve.runs, curve.less
    most, enough = runs[-1], curve.enough
    if len(less) == len(runs) - 1:
        where = processes(_count(most))
        text = f"the total still rose at the most that was measured, {where}: try more with --concurrency"
        return Finding("still-rising", text)
    if enough is most:
        return _unclear(curve)
    first = runs[len(less)]
    text = f"more than {processes(_count(enough))} gained less than {percent(EQUAL)}{_falling(curve)}"
    if enough is not first:
        text += f"; whether more than {_count(first)} gained anything {UNTOLD}"
    return Finding("plateau", text)


def _falling(curve: Curve) -> str:
    """Say how much less the most processes reached than the best, of those that are more and reach less."""
    best = curve.tested.best(curve.runs)
    more = [run for run in curve.runs if _count(run) > _count(best)]
    falls = [run for run in more if curve.tested.is_less(run, best) and not curve.tested.are_equal(run, best)]
    if not falls:
        return ""
    share = as_much(curve.tested.ratio(best, falls[-1]), "the best")
    return f", and {processes(_count(falls[-1]))} reached only {share}"


def _unclear(curve: Curve) -> Finding:
    """Say how much more processes gain at most, where it may be EQUAL or more; if that says anything."""
    known = f"more than {processes(_count(curve.less[-1]))} gained something; " if curve.less else ""
    first, most = processes(_count(curve.runs[len(curve.less)])), curve.most_gained
    if most is None or most > WORTH_SAYING:
        found = f"whether it pays to have more than {first} {UNTOLD}"
    else:
        found = f"more than {first} gained at most {percent(most)}, if anything"
    return Finding("cannot-tell", f"{known}{found}: {noise(curve.tested)}")


def _layouts(tested: Tested, found: Mapping[int, Curve]) -> Iterator[Finding]:
    (base_files, base), *others = found.items()
    compared = [text for layout, curve in others if (text := _against(tested, base, layout, curve))]
    if compared:
        yield Finding("layouts", f"Compared with {_laid_out(base_files, base)}: {listing(compared)}.")


def _laid_out(layout: int, curve: Curve) -> str:
    return laid_out(layout, [run.case for run in curve.runs])


def _against(tested: Tested, base: Curve, layout: int, curve: Curve) -> str | None:
    """Say how a layout compares at the largest concurrency that both have."""
    of_base = {_count(run): run for run in base.runs}
    common = [run for run in curve.runs if _count(run) in of_base]
    ratio = tested.ratio(of_base[_count(common[-1])], common[-1]) if common else None
    if ratio is None:
        return None
    at = f"at {processes(_count(common[-1]))}"
    told = as_much(ratio, "as much")
    if told:
        return f"{_laid_out(layout, curve)} gave {told} {at}"
    return f"what {_laid_out(layout, curve)} gave {at} {UNTOLD} from it ({between(ratio)} times)"
