"""How the writers of a round are killed: drawn beforehand, from the seed and the round's number."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

LONGEST_S = 0.1
"""Writers are killed within this time from their first acknowledged transaction."""
OPENING_SHARE = 0.25
"""Share of the rounds whose moment counts from when the writers begin to open the files."""
OPENING_S = 0.02
"""Within this time they are killed then: to open files, and to recover them, takes milliseconds."""
ALONE_SHARE = 0.35
"""Share of the rounds in which one writer is killed before the others."""
HELD_SHARE = 0.5
"""Share of the rounds that find the WAL of the round before: somebody has the files open until they begin."""


class Strike(NamedTuple):
    """How the writers of one round are killed."""

    opening: bool
    """Whether the moment counts from when they begin to open the files; else from their first transaction."""
    after_s: float
    """The moment at which the first of them is killed."""
    order: tuple[int, ...]
    """The writers, in the order in which they are killed."""
    alone: bool
    """Whether the first one is killed alone, and the others go on."""
    then_s: float
    """How long they go on before they are killed too."""
    held: bool
    """Whether who examined the files still has them open when the writers begin."""

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Those who are killed at one moment."""
        return (self.order[:1], self.order[1:]) if self.alone else (self.order,)


def draw(seed: int, number: int, writers: int) -> Strike:
    """Draw how so many writers are killed in a round."""
    random = Random(f"{seed}:strike:{number}")
    opening = random.random() < OPENING_SHARE
    return Strike(
        opening=opening,
        after_s=random.uniform(0.0, OPENING_S if opening else LONGEST_S),
        order=tuple(random.sample(range(1, writers + 1), writers)),
        alone=random.random() < ALONE_SHARE and writers > 1,
        then_s=random.uniform(0.0, LONGEST_S),
        held=random.random() < HELD_SHARE,
    )
