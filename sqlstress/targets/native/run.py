"""Carry out a plan in C, and say what stopped it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlstress.errors import EnvironmentFailure

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

RAN, STOPPED, OUT_OF_PATIENCE = range(3)
"""How a loop ended, as loop.h has it."""
OF_NO_STORE: dict[str, Any] = {
    "connections": [],
    "statements": (),
    "server": None,
    "fair": False,
    "turn_ns": 0,
    "mean_wait_ns": 0,
    "least_wait_ns": 0,
    "jitter": 1,
}
"""What a plan says of the stores that it is not for."""


def carry_out(
    native: ModuleType, plan: dict[str, Any], explained: Callable[[int, str], str]
) -> dict[str, Any]:
    """Run a plan by the C extension, and return what was done.

    Raises EnvironmentFailure where something stopped it: `explained` makes a sentence of the code, as SQLite
    has them, and of what the store said.
    """
    done: dict[str, Any] = native.run({**OF_NO_STORE, **plan})
    if done["ending"] == STOPPED:
        raise EnvironmentFailure(explained(done["code"], done["said"]))
    if done["ending"] == OUT_OF_PATIENCE:
        raise EnvironmentFailure(f"{done['given_up']} writes in a row were given up, and none was done")
    return done
