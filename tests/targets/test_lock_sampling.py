"""When samples of a lock are taken, on a clock of our own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from types import SimpleNamespace

import pytest

from sqlstress.targets.sqlite import lock_holders
from sqlstress.targets.sqlite.lock_holders import sampled


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A clock that only sleeping moves, and whoever sets it."""
    clock = SimpleNamespace(now=100.0)

    def sleep(seconds: float) -> None:
        clock.now += seconds

    fake = SimpleNamespace(perf_counter=lambda: clock.now, sleep=sleep)
    monkeypatch.setattr(lock_holders, "time", fake)
    yield clock


def test_each_sample_is_taken_at_a_random_moment_of_its_turn(clock: SimpleNamespace) -> None:
    taken = list(islice(sampled(10), 200))
    assert [int(at_s * 10) for at_s in taken] == list(range(200))
    places = [at_s * 10 % 1 for at_s in taken]
    assert min(places) < 0.1 and max(places) > 0.9


def test_what_was_missed_is_not_made_up_for(clock: SimpleNamespace) -> None:
    samples = sampled(10)
    next(samples)
    clock.now += 5.0  # nothing ran
    late, same_turn, following = islice(samples, 3)
    assert 5.0 <= late <= same_turn < following
    assert [int(at_s * 10) - int(late * 10) for at_s in (same_turn, following)] == [0, 1]
