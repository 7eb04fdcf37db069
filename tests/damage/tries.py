"""Verify the files of a trial: unchanged, and after each change of the catalogue."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from tests.damage.catalogue import CLEAN, Workload
from tests.damage.trial import Change, NothingToChange, Trial

LEVELS = ("quick", "full")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict on the files after a change, at one level of --verify."""

    failed: bool
    """Whether the verdict failed."""
    named: bool
    """Whether the verdict failed and its counter-examples name everything that was changed."""
    text: str
    """The change, and the counter-examples, as text."""


Outcomes = dict[tuple[str, str], Outcome]
"""Outcome by the name of the change and the level."""


def try_all(workload: Workload, trial: Trial, seed: int) -> Outcomes:
    """Return the outcomes of the unchanged files and of each possible change."""
    outcomes = dict(_judge(trial, CLEAN, Change("nothing", ())))
    for name, mutation in workload.changes.items():
        if isinstance(mutation, str):
            continue
        trial.restore()
        try:
            change = mutation(trial, Random(f"{seed}:{workload.name}:{name}"))
        except NothingToChange:
            continue
        outcomes.update(_judge(trial, name, change))
    return outcomes


def _judge(trial: Trial, name: str, change: Change) -> Iterator[tuple[tuple[str, str], Outcome]]:
    for level in LEVELS:
        verdict = trial.verdict(level)
        failed = verdict.status == "failed"
        named = failed and change.is_named(verdict.counterexamples)
        yield (name, level), Outcome(failed, named, f"{change.text}: {verdict.counterexamples}")
