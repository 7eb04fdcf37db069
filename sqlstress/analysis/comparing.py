"""What the passes say of some cases: which leads, by how much, and what can't be told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import EQUAL, Tested, noise
from sqlstress.analysis.wording import between, times
from sqlstress.report import Run
from sqlstress.statistics.ratios import Ratio

UNTOLD = "can't be told"
"""In every sentence that leaves something open."""
HEADS = 10
"""So many of the highest are looked at: each pair of many hundred cases would take half a minute."""
TOO_FEW = "So few trials tell no difference from noise: measure with --repeat 5."


@dataclass(frozen=True)
class Leaders:
    """The run with the highest figure, and those that can't be told from it."""

    best: Run
    runs: tuple[Run, ...]
    """The best one among them."""
    equal: bool
    """Whether they differ by less than EQUAL, beyond doubt."""

    @property
    def how(self) -> str:
        """How they compare, to be said after their names; nothing of one alone."""
        if len(self.runs) == 1:
            return ""
        return ", which are about equal" if self.equal else f", which {UNTOLD} apart"


def leaders(tested: Tested, runs: Sequence[Run]) -> Leaders:
    """Return the highest of one or more runs, with all that none of the highest leads beyond doubt."""
    heads = sorted(runs, key=tested.middle)[-HEADS:]
    near = (run for run in runs if not any(tested.is_less(run, head) for head in heads))
    return _near(tested, heads[-1], near)


def laggards(tested: Tested, runs: Sequence[Run]) -> Leaders:
    """Return the lowest of one or more runs, with all that lead none of the lowest beyond doubt."""
    tails = sorted(runs, key=tested.middle)[:HEADS]
    near = (run for run in runs if not any(tested.is_less(tail, run) for tail in tails))
    return _near(tested, tails[0], near)


def _near(tested: Tested, best: Run, runs: Iterable[Run]) -> Leaders:
    near = tuple(runs)
    return Leaders(best, near, all(tested.are_equal(best, run) for run in near))


def as_much(ratio: Ratio | None, what: str) -> str | None:
    """Say how one figure compares: "1.9 times (1.8 to 2.0) as fast"; None where that can't be told."""
    if ratio is None:
        return None
    if ratio.is_within(EQUAL):
        return f"about {what}"
    return f"{times(ratio.estimate)} ({between(ratio)}) {what}" if ratio.is_above or ratio.is_below else None


def untold(ratio: Ratio | None) -> str:
    """Say that it can't be told: "can't be told (0.8 to 1.3 times)"."""
    return UNTOLD if ratio is None else f"{UNTOLD} ({between(ratio)} times)"


def doubts(tested: Tested | None, found: Sequence[Finding]) -> Iterator[Finding]:
    """Yield why something can't be told, and what would help, where something that was found can't.

    `tested` is None where there were too few passes; then what was found are single figures.
    """
    if found and tested is None:
        yield Finding("cannot-tell", TOO_FEW)
    elif tested and any(UNTOLD in one.said for one in found):
        yield Finding("cannot-tell", f"Why something {UNTOLD}: {noise(tested)}.")
