"""Times of samples of a lock, on a fake clock, and the resulting lengths of holds."""

from collections.abc import Iterator
from itertools import islice, product
from types import SimpleNamespace

import pytest

from sqlstress.targets.sqlite import lock_holders
from sqlstress.targets.sqlite.lock_holders import EMPTY, HoldTracker, LockSample, TimedSample, sample_locks

FREE = LockSample(EMPTY)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A clock that only sleeping and a test's assignments move."""
    clock = SimpleNamespace(now=100.0)

    def sleep(seconds: float) -> None:
        clock.now += seconds

    fake = SimpleNamespace(perf_counter=lambda: clock.now, sleep=sleep)
    monkeypatch.setattr(lock_holders, "time", fake)
    yield clock


def test_each_sample_is_at_a_random_moment_of_its_interval(clock: SimpleNamespace) -> None:
    times_s = [sample.asked_s for sample in islice(sample_locks(10, lambda: FREE), 200)]
    assert [int(at_s * 10) for at_s in times_s] == list(range(200))
    places = [at_s * 10 % 1 for at_s in times_s]
    assert min(places) < 0.1 and max(places) > 0.9


def test_missed_samples_are_not_made_up_for(clock: SimpleNamespace) -> None:
    samples = (sample.asked_s for sample in sample_locks(10, lambda: FREE))
    next(samples)
    clock.now += 5.0  # nothing ran
    late, same_turn, following = islice(samples, 3)
    assert 5.0 <= late <= same_turn < following
    assert [int(at_s * 10) - int(late * 10) for at_s in (same_turn, following)] == [0, 1]


def test_bounds_of_a_hold_are_correct_despite_delays() -> None:
    for *delays, taken_s, length_s in product(*[(0, 3)] * 6, range(6), (1, 2, 4)):
        runs, before_s, now_s = HoldTracker(), 0, 0
        for asks_s, answers_s in [(0, 0), *zip(delays[::2], delays[1::2], strict=True), (20, 0)]:
            asked_s = now_s + 1
            looks_s = asked_s + asks_s
            now_s = looks_s + answers_s
            if taken_s <= looks_s < taken_s + length_s:
                runs.add_held(TimedSample(asked_s, now_s, FREE), before_s)
            else:
                runs.free(TimedSample(asked_s, now_s, FREE))
            before_s = asked_s
        assert runs.longest_s <= length_s
        assert not runs.times or length_s <= runs.most_s
