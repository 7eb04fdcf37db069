"""Pulses for tests: `nothing` does nothing; `Pulses` counts its calls and can stop its caller."""

from collections.abc import Callable
from itertools import count

from sqlstress.errors import Interrupted
from sqlstress.system.interrupt import Pulse


def nothing() -> None:
    """Let the work go on."""


class Pulses:
    """Counts its calls; raises Interrupted at the call with the given number, and at every later one."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.stop_at = stop_at
        self.count = 0

    def __call__(self) -> None:
        self.count += 1
        if self.stop_at is not None and self.count >= self.stop_at:
            raise Interrupted("stopped by a test")


def stopped_everywhere(act: Callable[[Pulse], object]) -> int:
    """Call `act`, stopped at its first pulse, then its second, and so on; return the number of stops."""
    for number in count(1):
        try:
            act(Pulses(stop_at=number))
        except Interrupted:
            continue
        return number - 1
    raise AssertionError("it has no end")
