"""The proof, as pure functions: from what the workers were told to what the database says.

For each key, the value found must be some worker's last acknowledged write to it, and no other
acknowledged write to that key may have begun after that one completed. Overlapping writes may end
either way. A write that was under way when its worker died may be there or not, but not instead of one that
began after that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlstress.engine.protocols import Outcome
from sqlstress.engine.values import Stamp
from sqlstress.report import Check
from sqlstress.report.problems import EXAMPLES, Tally

PRELOADED = Stamp(0, 0)
"""Stands for the value that the key had before the trial."""


Column = Sequence[int] | Mapping[int, int]
"""A number for each slot."""


@dataclass(slots=True)
class History:
    """What the workers were told: by worker (from 0: worker 1) and slot; times on one shared clock."""

    sequences: Sequence[Column]
    """Sequence number of the last acknowledged write; 0: none."""
    begins: Sequence[Column]
    ends: Sequence[Column]
    latest: Column
    """The latest begin of any worker's acknowledged write; 0: none."""
    unknown: Mapping[Stamp, int] = field(default_factory=dict)
    """Writes of which nobody knows whether they were done, and the slot that each was meant for."""
    over: Mapping[int, int] = field(default_factory=dict)
    """When workers that died had certainly ended, by worker: what was not done by then never was."""

    def objection(self, slot: int, found: Stamp) -> str | None:
        """Say what is wrong with the write found at a slot; None when nothing is."""
        if self.unknown.get(found) == slot:
            return self._late(slot, found)
        if found == PRELOADED:
            return (
                f"holds its earlier value, but {self._last(slot)} was acknowledged"
                if self.latest[slot]
                else None
            )
        worker, sequence = found
        if not 1 <= worker <= len(self.sequences):
            return f"holds a value of worker {worker}, who does not exist"
        last = self.sequences[worker - 1][slot]
        if sequence != last:
            told = (
                f"write {last} is its last acknowledged one"
                if last
                else "none of its writes was acknowledged"
            )
            return f"holds worker {worker}'s write {sequence}, but {told}"
        if self.ends[worker - 1][slot] < self.latest[slot]:
            later = self._last(slot)
            return f"holds worker {worker}'s write {sequence}, but {later} began after that one completed"
        return None

    def _late(self, slot: int, found: Stamp) -> str | None:
        """Say what is wrong with a write that was under way when its worker died."""
        worker, sequence = found
        if self.latest[slot] <= self.over.get(worker, self.latest[slot]):
            return None
        later = self._last(slot)
        return f"holds write {sequence} of worker {worker}, who died in it, but {later} began after that"

    def _last(self, slot: int) -> str:
        begins = [column[slot] for column in self.begins]
        worker = begins.index(max(begins))
        return f"worker {worker + 1}'s write {self.sequences[worker][slot]}"


def ends_of_the_dead(outcomes: Iterable[Outcome]) -> dict[int, int]:
    """Return when the workers that died had ended, of those of whom it is known."""
    return {outcome.worker: outcome.over_ns for outcome in outcomes if outcome.died and outcome.over_ns}


def check_keys(
    history: History,
    found: Iterable[tuple[str, int | None, Stamp | None]],
    missing: Iterable[str],
    note: str = "",
) -> Check:
    """Judge every row that was found.

    A row is (key in words, its slot or None if not tracked, its write or None if nobody's).
    """
    tally = Tally("last write")
    for key, slot, stamp in found:
        tally.checked += 1
        if stamp is None:
            tally.problem(f"key {key} holds a value that nobody wrote")
        elif slot is not None and (text := history.objection(slot, stamp)):
            tally.problem(f"key {key} {text}")
    for key in missing:
        tally.problem(f"key {key} is gone")
    return tally.check(note)


def check_counters(found: Mapping[str, object], told: Mapping[str, int], maybe: int) -> Check:
    """Compare counters with the acknowledged updates; `maybe` updates of dead workers may be there too."""
    tally = Tally("lost updates")
    extra: dict[str, int] = {}
    for name, acknowledged in told.items():
        tally.checked += 1
        value = found.get(name)
        if name not in found:
            tally.problem(f"counter {name} is gone")
        elif not isinstance(value, int):
            tally.problem(f"counter {name} is {value!r:.40}, which is no number of updates")
        elif value < acknowledged:
            tally.problem(f"counter {name} is {value} after {acknowledged} acknowledged updates")
        elif value > acknowledged:
            extra[name] = value - acknowledged
    for name in found.keys() - told.keys():
        tally.problem(f"counter {name} is there, and nobody made it")
    if sum(extra.values()) > maybe:
        where = ", ".join(f"{name} {more}" for name, more in [*extra.items()][:EXAMPLES])
        tally.problem(
            f"the counters hold {sum(extra.values())} more than was acknowledged, and at most {maybe} are "
            f"accounted for: {where}"
        )
    return tally.check()
