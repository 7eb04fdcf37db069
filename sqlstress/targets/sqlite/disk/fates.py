"""Fates: which of the effects that were not durable at a power cut became it nevertheless.

Nothing says in which order a disk, and the system's cache above it, carry out what was not synced: any
choice of the effects is possible. These choices are drawn so that each kind of accident is met often.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

Fate = Callable[[int, Random], list[bool]]
"""(number of effects, random stream) → for each of them, in their order, whether it became durable."""


def nothing(effects: int, random: Random) -> list[bool]:
    """Return that all of it is lost."""
    return [False] * effects


def everything(effects: int, random: Random) -> list[bool]:
    """Return that all of it is there, as after the death of a process."""
    return [True] * effects


def up_to_a_point(effects: int, random: Random) -> list[bool]:
    """Return that all of it was carried out in order, and a point at which it was broken off."""
    done = random.randint(0, effects)
    return [True] * done + [False] * (effects - done)


def all_but_one(effects: int, random: Random) -> list[bool]:
    """Return that one is lost, whatever followed it."""
    kept = [True] * effects
    if effects:
        kept[random.randrange(effects)] = False
    return kept


def only_one(effects: int, random: Random) -> list[bool]:
    """Return that one is there, whatever preceded it."""
    return [not keep for keep in all_but_one(effects, random)]


def at_random(effects: int, random: Random) -> list[bool]:
    """Return a share drawn anew for each image: few of them, about half, or most, in no order."""
    share = random.choice((0.1, 0.5, 0.9))
    return [random.random() < share for _ in range(effects)]


FATES: dict[str, Fate] = {
    "nothing": nothing,
    "everything": everything,
    "up to a point": up_to_a_point,
    "all but one": all_but_one,
    "only one": only_one,
    "at random": at_random,
}
"""By the name that a report gives them."""
