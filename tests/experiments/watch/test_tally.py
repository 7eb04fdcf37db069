"""Holders and durations from samples: made-up samples, at made-up times."""

from dataclasses import replace

import pytest

from sqlstress.experiments.watch.spec import DELETED, JOURNAL, REPLACED, Process, Watch, Watching
from sqlstress.experiments.watch.tally import MOST_STEPS, WatchTally
from sqlstress.targets.sqlite.lock_holders import (
    CHECKPOINT,
    MISSING,
    READ,
    ROLLBACK,
    WAL,
    WRITE,
    Lock,
    LockSample,
    TimedSample,
)
from sqlstress.targets.sqlite.walindex import WalIndex

A, B = 0, 1
PEOPLE = [Process(100), Process(101)]
BLANK = Watch("app.db", Watching())


def tally(*looks: tuple[float, LockSample]) -> WatchTally:
    """Return a tally of the samples."""
    made = WatchTally(lambda pid: pid - 100)
    for at_s, sampled in looks:
        made.add(TimedSample(at_s, at_s, sampled))
    return made


def look(*locks: tuple[str, int], changes: int | None = 0, wal: WalIndex | None = None) -> LockSample:
    return LockSample(WAL, tuple(Lock(name, 100 + place) for name, place in locks), changes, wal, 1)


def tally_of_locks(*locks: tuple[str, int], changes: tuple[int | None, ...]) -> WatchTally:
    """Return a tally of samples of equal locks, 0.1 s from each other."""
    return tally(*((number / 10, look(*locks, changes=change)) for number, change in enumerate(changes, 1)))


def watch_of(made: WatchTally, blank: Watch = BLANK) -> Watch:
    return made.watch(blank, PEOPLE)


def test_hold_is_bounded_by_the_samples_with_and_without_it() -> None:
    free, held = look(), look((WRITE, A))
    watch = watch_of(tally((0.1, free), (0.2, held), (0.3, held), (0.4, held), (0.5, free)))
    holds = watch.processes[0].locks[WRITE]
    assert (holds.samples, holds.times, holds.now_s) == (3, 1, 0.0)
    assert holds.longest_s == pytest.approx(0.2)
    assert holds.most_s == pytest.approx(0.4)
    assert holds.longest_at_s == pytest.approx(0.2)


def test_commit_between_samples_ends_a_hold_without_a_gap_in_use() -> None:
    watch = watch_of(tally_of_locks((WRITE, A), changes=(5, 5, 6, None, 7)))
    own = watch.processes[0].locks[WRITE]
    assert (own.samples, own.times) == (5, 3)
    assert own.longest_s == pytest.approx(0.1)
    assert watch.write.longest_s == pytest.approx(0.4)
    # The unknown changes in between are not counted twice.
    assert watch.commits == 1


def test_commits_are_counted_over_the_end_of_the_counter() -> None:
    assert (
        watch_of(tally_of_locks(changes=(2**32 - 1, 1, 0))).commits == 2
    )  # a counter that decreases restarts from 0


def test_longest_holder_comes_first_and_references_follow() -> None:
    by_b = look((WRITE, B))
    made = tally((0.15, by_b), (0.25, by_b), (0.35, by_b), (0.45, look((WRITE, A))))
    assert made.longest_now == (A, 0.0)
    watch = watch_of(made, replace(BLANK, held_too_long=B))
    assert [process.pid for process in watch.processes] == [101, 100]
    assert watch.held_too_long == 0
    assert watch.course.held == {"0": (0, 1, 1, 1, 0), "1": (0, 0, 0, 0, 1)}


def test_checkpoint_continues_while_others_commit() -> None:
    assert (
        watch_of(tally_of_locks((CHECKPOINT, A), changes=(1, 2, 3))).processes[0].locks[CHECKPOINT].times == 3
    )


def index(frames: int, checkpointed: int, *marks: int) -> WalIndex:
    return WalIndex(frames, checkpointed, 1, 4096, 0, (0, *marks, 0, 0, 0)[:5])


def reading(slot: int, place: int, wal: WalIndex) -> LockSample:
    return LockSample(WAL, (Lock(READ, 100 + place, slot),), 0, wal, 1)


def test_reader_pins_from_the_first_commit_after_its_mark() -> None:
    frames = ((0.1, 4), (0.2, 9), (0.3, 40))
    made = tally(*((at_s, reading(1, A, index(count, 4, 4))) for at_s, count in frames))
    made.add_readers([Lock(READ, 101, 1)])
    watch = watch_of(made)
    (pin,) = watch.pins
    assert (pin.frame, pin.grew_frames, pin.lasts) == (4, 36, True)
    assert [watch.processes[place].pid for place in pin.processes] == [100, 101]
    assert pin.since_s == pytest.approx(0.2) and pin.seconds == pytest.approx(0.1)
    made.add(TimedSample(0.4, 0.4, reading(1, A, index(41, 41, 41))))
    assert [pin.lasts for pin in watch_of(made).pins] == [False]


def test_reader_of_the_database_file_pins_once_the_wal_grows() -> None:
    wals = ((0.1, index(9, 9)), (0.2, index(3, 0)), (0.3, index(5, 0)))
    (pin,) = watch_of(tally(*((at_s, reading(0, A, wal)) for at_s, wal in wals))).pins
    assert (pin.frame, pin.grew_frames) == (0, 5)


def test_readers_that_come_and_go_pin_nothing() -> None:
    looks = ((step / 10, reading(1, A, index(step + 1, 0, step))) for step in range(1, 9))
    assert watch_of(tally(*looks)).pins == ()


def test_each_event_of_the_file_is_recorded_once() -> None:
    looks = (
        LockSample(WAL, (), 5, None, 1),
        LockSample(ROLLBACK, (), 5, None, 1),
        LockSample(MISSING, file=1),
        LockSample(MISSING, file=1),
        LockSample(ROLLBACK, (), 900, None, 2),
    )
    watch = watch_of(tally(*((number / 10, sampled) for number, sampled in enumerate(looks))))
    assert [event.what for event in watch.events] == [JOURNAL, DELETED, REPLACED]
    assert (watch.commits, watch.journal, watch.open_samples) == (None, "rollback", 3)


def test_long_watch_has_longer_steps_rather_than_more() -> None:
    course = watch_of(tally(*((second + 0.05, look((WRITE, A))) for second in range(400)))).course
    assert len(course.samples) <= MOST_STEPS
    assert course.step_s == pytest.approx(0.8)
    assert sum(course.samples) == sum(course.held["0"]) == 400


def chain_of(*holds: tuple[float, float, int]) -> float:
    """Return the length of the last hold of A, in s, from holds (begin, end, commits) sampled each 10 ms."""
    spans = [(round(begin * 100), round(end * 100), changes) for begin, end, changes in holds]
    made = WatchTally(lambda pid: pid - 100)
    for step in range(spans[0][0], spans[-1][1] + 1):
        changes = next((commits for begin, end, commits in spans if begin <= step <= end), None)
        sampled = look() if changes is None else look((WRITE, A), changes=changes)
        made.add(TimedSample(step / 100, step / 100, sampled))
    assert made.longest_now is not None
    return made.longest_now[1]


def test_long_holds_with_short_gaps_count_as_one() -> None:
    assert chain_of((0.1, 1.1, 0), (1.14, 2.1, 0), (2.14, 3.1, 0)) == pytest.approx(3.0)
    assert chain_of((0.1, 1.1, 0), (1.3, 2.1, 0)) == pytest.approx(0.8)


def test_short_holds_with_short_gaps_stay_separate() -> None:
    assert chain_of((0.1, 0.15, 0), (0.18, 0.23, 1), (0.26, 0.31, 2)) == pytest.approx(0.05)


def test_hold_by_another_process_ends_a_chain() -> None:
    turns = ((0.1, A), (0.3, A), (0.35, B), (0.4, A), (0.5, A))
    made = tally(*((at_s, look((WRITE, place))) for at_s, place in turns))
    assert made.longest_now is not None and made.longest_now[0] == A
    assert made.longest_now[1] == pytest.approx(0.1)


def checkpoint_look(wal: WalIndex, slot: int = 1) -> LockSample:
    locks = (Lock(WRITE, 100), Lock(CHECKPOINT, 100), Lock(READ, 101, slot))
    return LockSample(WAL, locks, 0, wal, 1)


def test_checkpoint_waits_for_readers_that_keep_frames_or_the_whole_wal() -> None:
    behind, copied, copying = index(9, 2, 4), index(9, 9, 9), index(9, 2, 9)
    for wal, samples in ((behind, 3), (copied, 3), (copying, 0)):
        waits = watch_of(tally(*((step / 10, checkpoint_look(wal)) for step in (1, 2, 3)))).waits
        assert [(wait.holder, wait.reader, wait.samples) for wait in waits] == [(0, 1, 3)] * bool(samples)


def test_time_without_gaps_between_readers_ends_without_a_reader() -> None:
    wal = index(9, 9, 9)
    reads, free = reading(1, A, wal), look(wal=wal)
    timed = ((0.1, reads), (0.5, reads), (0.6, free), (0.7, reads), (0.8, reads))
    assert watch_of(tally(*timed)).without_gap_s == pytest.approx(0.4)
    of_the_file = reading(0, A, wal)
    assert watch_of(tally((0.1, of_the_file), (0.5, of_the_file))).without_gap_s == 0
