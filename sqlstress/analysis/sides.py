"""Sides: the targets of a group whose cases differ in the driver only, and which of them leads where.

Only those are set against each other whose commits are worth the same: one that waits for no sync is no
faster than one that does, it does less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from sqlstress.analysis.comparing import TOO_FEW, UNTOLD, leaders
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import ERROR, Group, Tested, noise
from sqlstress.analysis.wording import listing, places, rounded
from sqlstress.experiment import face_of
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.statistics.ratios import FEWEST, Ratio
from sqlstress.target import target_name, worth

Place = tuple[int, int]
"""Files and processes."""

TOLD_APART, EQUAL, UNTELLABLE, TOO_FEW_PASSES = "leads", "equal", "can't tell", "too few passes"


@dataclass(frozen=True, slots=True)
class Side:
    """A target, and what was measured of it."""

    name: str
    """The target's; the driver's where that stands for several sides."""
    runs: tuple[Run, ...]
    worth: str
    """What a commit is worth, on the scale that all targets share; "" where it is not known, or differs."""

    @property
    def bare_call_ns(self) -> float | None:
        """What the cheapest call through its binding costs, in nanoseconds; None where nobody measured it."""
        found = [one for run in self.runs for trial in run.valid if (one := trial.bare_call_ns) is not None]
        return median(found) if found else None

    @property
    def driver(self) -> str:
        """What its processes speak through."""
        return self.runs[0].case.driver


@dataclass(frozen=True, slots=True)
class Lead:
    """Which of some sides leads at a place."""

    case: Case
    """One of the cases at that place."""
    names: tuple[str, ...]
    """Of the sides that were set against each other."""
    ahead: tuple[str, ...]
    """Of those that lead, or can't be told from who does."""
    verdict: str
    """TOLD_APART: one leads; EQUAL: those ahead are about equal; UNTELLABLE or TOO_FEW_PASSES."""
    ratio: Ratio | None = None
    """The leader over the next one, where one leads."""
    noise: str = ""
    """Why it can't be told, and what would help."""


def sides_of(group: Group) -> tuple[Side, ...]:
    """Return the targets of a group; none where it has not got several."""
    targets = [target_name(part.case.driver) for part in group.parts] if group.setting == "driver" else []
    if len(set(targets)) < 2:
        return ()
    return tuple(
        Side(target if targets.count(target) == 1 else part.case.driver, part.runs, _worth(part.runs))
        for target, part in zip(targets, group.parts, strict=True)
    )


def _worth(runs: Sequence[Run]) -> str:
    found = {worth(trial.durability) for run in runs for trial in run.valid}
    return found.pop() if len(found) == 1 else ""


def at(case: Case) -> Place:
    """Return where a case stands among those of its side."""
    return case.buckets, case.concurrency


def by_worth(sides: Sequence[Side]) -> list[tuple[Side, ...]]:
    """Return the sides that can be set against each other, together; of which it is not known, each alone."""
    found: dict[str, list[Side]] = {}
    for side in sides:
        found.setdefault(side.worth or f"unknown of {side.name}", []).append(side)
    return [tuple(own) for own in found.values()]


def leads(group: Group) -> list[Lead]:
    """Return who leads at each place that comparable sides have in common.

    Of a load at a rate it is none: what is done a second says only that it kept up.
    """
    if group.case.arrivals:
        return []
    several = [own for own in by_worth(sides_of(group)) if len(own) > 1]
    return [one for own in several for one in _leads(group, own, ERROR / group.groups / len(several))]


def _leads(group: Group, sides: Sequence[Side], error: float) -> Iterator[Lead]:
    runs = [{at(run.case): run for run in side.runs if group.is_believed(run)} for side in sides]
    common = [place for place in sorted(runs[0]) if all(place in own for own in runs)]
    everyone = [own[place] for place in common for own in runs]
    names = tuple(side.name for side in sides)
    tested = Tested(everyone, [run.rates() for run in everyone], error) if everyone else None
    for place in common:
        case, here = runs[0][place].case, {name: own[place] for name, own in zip(names, runs, strict=True)}
        if tested is None or tested.passes < FEWEST:
            yield Lead(case, names, names, TOO_FEW_PASSES)
        else:
            yield _lead(case, here, tested)


def _lead(case: Case, here: dict[str, Run], tested: Tested) -> Lead:
    found, names = leaders(tested, list(here.values())), tuple(here)
    ahead = tuple(name for name, run in here.items() if run in found.runs)
    if len(ahead) == 1:
        others = [run for run in here.values() if run is not found.best]
        return Lead(case, names, ahead, TOLD_APART, tested.ratio(tested.best(others), found.best))
    if found.equal:
        return Lead(case, names, ahead, EQUAL)
    return Lead(case, names, ahead, UNTELLABLE, noise=noise(tested))


def who_leads(group: Group) -> Iterator[Finding]:
    """Yield at which places which target leads, and which can't be compared."""
    sides = sides_of(group)
    classes = by_worth(sides)
    if len(classes) > 1 and not any(side.worth for side in sides):
        every = listing([side.name for side in sides])
        yield Finding("not-comparable", f"Not comparable: what a commit of {every} is worth is not known.")
    elif len(classes) > 1:
        # Where the connections are the user's own there is no such option.
        advice = " Where --synchronous gives them the same, measure so." * face_of(group.case).sets
        told = [f"{listing([side.name for side in own])}: {own[0].worth or 'not known'}" for own in classes]
        yield Finding(
            "not-comparable",
            f"Not comparable, since a commit is not worth the same: {'; '.join(told)}.{advice}",
        )
    found = leads(group)
    for names in dict.fromkeys(one.names for one in found):
        yield _said([one for one in found if one.names == names], group)


def _said(found: Sequence[Lead], group: Group) -> Finding:
    """Return who leads among some sides, as a sentence."""
    names = found[0].names
    if all(one.verdict == TOO_FEW_PASSES for one in found):
        return Finding("leads", f"Which of {listing(names)} leads {UNTOLD}. {TOO_FEW}")
    together: dict[tuple[str, tuple[str, ...]], list[Lead]] = {}
    for one in found:
        together.setdefault((one.verdict, one.ahead), []).append(one)
    clauses = "; ".join(_clause(own) for own in together.values())
    # The first side's worth is that of all of them.
    side = next(one for one in sides_of(group) if one.name == names[0])
    why = next((f" {one.noise[0].upper()}{one.noise[1:]}." for one in found if one.noise), "")
    return Finding("leads", f"With {side.worth}: {clauses}.{why}")


def _clause(own: Sequence[Lead]) -> str:
    """Return "lmdb leads with 1 to 4 processes on 1 file (2.1 to 2.5 times sqlite)"."""
    first, where = own[0], places(one.case for one in own)
    if first.verdict == TOLD_APART:
        return f"{first.ahead[0]} leads with {where}{_by(own)}"
    if first.verdict == EQUAL:
        before = " and lead" if len(first.ahead) < len(first.names) else ""
        return f"{listing(first.ahead)} are about equal{before} with {where}"
    return f"which of {listing(first.ahead)} leads with {where} {UNTOLD}"


def _by(own: Sequence[Lead]) -> str:
    """Return by how much one leads: what the intervals of all places span."""
    ratios = [one.ratio for one in own if one.ratio]
    if not ratios:
        return ""
    next_one = [name for name in own[0].names if name not in own[0].ahead]
    whom = next_one[0] if len(next_one) == 1 else "the next"
    low, high = min(one.low for one in ratios), max(one.high for one in ratios)
    return f" ({rounded(low, 2)} to {rounded(high, 2)} times {whom})"
