"""Time that passes only while somebody sleeps, for the processes beside the workers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sqlstress.experiments.kv import companions


class Time:
    """Stands in for the module `time`."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.sleeps: list[float] = []

    def perf_counter_ns(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now_ns += round(seconds * 1e9)

    def over(self, end_ns: int) -> Callable[[], bool]:
        """Return what says that it is over, from then on."""
        return lambda: self.now_ns >= end_ns


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> Time:
    """The time of the module `timing`."""
    fake = Time()
    monkeypatch.setattr(companions, "time", fake)
    return fake
