"""Time that passes only when somebody sleeps."""

from __future__ import annotations

from collections.abc import Callable

from sqlstress.targets.sqlite.busy import Waiting


class FakeTime:
    """A clock, and a sleep that moves it and then calls `meanwhile` with the number of sleeps so far."""

    def __init__(self, meanwhile: Callable[[int], None] = lambda sleeps: None) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self._meanwhile = meanwhile

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept.append(seconds)
        self._meanwhile(len(self.slept))

    def waiting(self, workers: int = 8, timeout_s: float = 60.0, seed: str = "") -> Waiting:
        return Waiting(workers, timeout_s, seed, self.sleep, self.clock)
