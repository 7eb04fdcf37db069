"""One change at a time: what the verdict says of it."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from benchmarks.mutations.catalogue import CLEAN, Workload
from benchmarks.mutations.change import Change, Mutation, NothingToChange
from benchmarks.mutations.trial import Trial

LEVELS = ("quick", "full")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a verdict said of a change."""

    change: str
    """Which one, as the table heads it."""
    level: str
    text: str
    """What was done."""
    failed: bool
    """Whether the verdict failed."""
    named: bool
    """Whether it named what was changed."""
    told: tuple[str, ...]
    """Its counter-examples."""

    @property
    def is_miss(self) -> bool:
        """Whether the verdict should have said something else."""
        return self.failed if self.change == CLEAN else not self.named


def try_all(workload: Workload, trial: Trial, seed: int) -> list[Outcome]:
    """Try every change that the workload's files can suffer, and none at all, on copies."""
    found = _judged(trial, CLEAN, Change("nothing", ()))
    for name, change in workload.changes.items():
        if not isinstance(change, str):
            found += try_one(workload, trial, name, change, seed)
    return found


def try_one(workload: Workload, trial: Trial, name: str, mutation: Mutation, seed: int) -> list[Outcome]:
    """Try one change; nothing comes back when this trial left nothing to change in this way."""
    trial.restore()
    try:
        change = mutation(trial, Random(f"{seed}:{workload.name}:{name}"))
    except NothingToChange:
        return []
    return _judged(trial, name, change)


def _judged(trial: Trial, name: str, change: Change) -> list[Outcome]:
    found = []
    for level in LEVELS:
        verdict = trial.verdict(level)
        told = verdict.counterexamples
        failed = verdict.status == "failed"
        named = failed and change.is_named(told)
        found.append(Outcome(name, level, change.text, failed, named, tuple(told)))
    return found
