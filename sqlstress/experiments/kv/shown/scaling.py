"""How the throughput grows with processes and files: only what the passes tell from their noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import EQUAL, Group, Tested, noise
from sqlstress.analysis.wording import (
    between,
    files,
    listing,
    percent,
    places,
    processes,
    rounded,
    times,
)
from sqlstress.report import Run

WORTH_SAYING = 1.0
"""A gain of so much, if it can't be ruled out, leaves everything open."""


def throughput(group: Group) -> Iterator[Finding]:
    """Yield what the totals of a group say; nothing when only one point was measured."""
    runs = believed(group)
    if len({(run.case.buckets, run.case.concurrency) for run in runs}) < 2:
        return
    tested = group.tested(runs)
    if tested is None:
        yield _highest(group, runs)
        return
    yield _best(group, tested, runs)
    layouts = curves(tested, runs)
    for layout, curve in layouts.items():
        if len(curve.runs) > 1:
            yield _scaling(curve, files(layout))
    yield from _layouts(tested, layouts)


def believed(group: Group) -> list[Run]:
    """Return the runs whose figures count, and of which the number of processes is known."""
    return [run for run in group.runs if run.case.concurrency and group.is_believed(run)]


def rivals(tested: Tested, runs: Sequence[Run]) -> list[Run]:
    """Return the best of the runs, and those that can't be told from it."""
    best = tested.best(runs)
    return [run for run in runs if run is best or not tested.is_less(run, best)]


def curves(tested: Tested, runs: Sequence[Run]) -> dict[int, Curve]:
    """Return the runs of each layout, by its number of files."""
    return {
        layout: Curve(tested, [run for run in runs if run.case.buckets == layout])
        for layout in sorted({run.case.buckets for run in runs})
    }


def _highest(group: Group, runs: Sequence[Run]) -> Finding:
    best = max(runs, key=lambda run: run.median_tps() or 0.0)
    return Finding(
        "best",
        f"Highest: {rounded(best.median_tps() or 0.0)} {group.unit} a second, with {places([best.case])}. "
        "One trial of each case does not tell that from noise; --repeat 5 does.",
    )


def _best(group: Group, tested: Tested, runs: Sequence[Run]) -> Finding:
    best, first = tested.best(runs), rivals(tested, runs)
    rate, where = rounded(tested.middle(best)), places(run.case for run in first)
    if len(first) == 1:
        return Finding("best", f"Best: {rate} {group.unit} a second, with {where}.")
    about = f"Best: about {rate} {group.unit} a second, with {where}"
    if all(tested.are_equal(best, run) for run in first):
        return Finding("best", f"{about}, which are about equal.")
    return Finding("best", f"{about}, which can't be told apart.")


@dataclass(frozen=True)
class Curve:
    """The runs of one layout."""

    tested: Tested
    own: Sequence[Run]

    @property
    def runs(self) -> list[Run]:
        """In ascending order of processes, one of each."""
        return sorted({run.case.concurrency: run for run in self.own}.values(), key=_count)

    @property
    def best(self) -> Run:
        return self.tested.best(self.runs)

    @property
    def less(self) -> list[Run]:
        """Those at the beginning of which a larger number reaches more, beyond doubt."""
        found = []
        for place, run in enumerate(self.runs):
            if not any(self.tested.is_less(run, other) for other in self.runs[place + 1 :]):
                break
            found.append(run)
        return found

    @property
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

    @property
    def falls(self) -> list[Run]:
        """Those after the best that reach less, beyond doubt."""
        best = self.best
        return [run for run in self.runs if _count(run) > _count(best) and self.tested.is_less(run, best)]


def _count(run: Run) -> int:
    return run.case.concurrency


def _scaling(curve: Curve, where: str) -> Finding:
    """Say at how many processes the total of a layout stops rising, as far as the passes tell."""
    runs, less = curve.runs, curve.less
    most, enough = runs[-1], curve.enough
    if len(less) == len(runs) - 1:
        return Finding(
            "still-rising",
            f"On {where} the total still rose at the most that was measured, {processes(_count(most))}: "
            "try more with --concurrency.",
        )
    if enough is most:
        return _unclear(curve, where)
    first = runs[len(less)]
    found = f"more than {processes(_count(enough))} gained less than {percent(EQUAL)}{_falling(curve)}"
    if enough is not first:
        found += f"; whether more than {_count(first)} gained anything can't be told"
    return Finding("plateau", f"On {where} {found}.")


def _falling(curve: Curve) -> str:
    falls = curve.falls
    if not falls:
        return ""
    ratio = curve.tested.ratio(curve.best, falls[-1])
    assert ratio
    share = f"{times(ratio.estimate)} ({between(ratio)}) the best"
    return f", and {processes(_count(falls[-1]))} reached only {share}"


def _unclear(curve: Curve, where: str) -> Finding:
    """Say how much more processes gain at most, where it may be EQUAL or more; if that says anything."""
    known = f"more than {processes(_count(curve.less[-1]))} gained something; " if curve.less else ""
    first, most = processes(_count(curve.runs[len(curve.less)])), curve.most_gained
    if most is None or most > WORTH_SAYING:
        found = f"whether it pays to have more than {first} can't be told"
    else:
        found = f"more than {first} gained at most {percent(most)}, if anything"
    return Finding("cannot-tell", f"On {where} {known}{found}: {noise(curve.tested)}.")


def _layouts(tested: Tested, layouts: dict[int, Curve]) -> Iterator[Finding]:
    (base_files, base), *others = layouts.items()
    compared = [text for layout, curve in others if (text := _against(tested, base, layout, curve))]
    if compared:
        yield Finding("layouts", f"Compared with {files(base_files)}: {listing(compared)}.")


def _against(tested: Tested, base: Curve, layout: int, curve: Curve) -> str | None:
    """Say how a layout compares at the largest concurrency that both have."""
    of_base = {_count(run): run for run in base.runs}
    common = [run for run in curve.runs if _count(run) in of_base]
    if not common:
        return None
    run = common[-1]
    ratio = tested.ratio(of_base[_count(run)], run)
    at = f"at {processes(_count(run))}"
    if ratio is None:
        return None
    if ratio.is_within(EQUAL):
        return f"{files(layout)} gave about as much {at}"
    if ratio.is_above or ratio.is_below:
        return f"{files(layout)} gave {times(ratio.estimate)} ({between(ratio)}) as much {at}"
    return f"what {files(layout)} gave {at} can't be told from it ({between(ratio)} times)"
