"""Computation of a watch's result from its samples.

A position is an index in the list of processes. A hold is a time during which every sample saw a process with
a lock. A read mark is the last frame of the WAL that a reader sees; the wal-index has several slots, each
with a read mark and a read lock. A pin is a reader with an old snapshot, which keeps the WAL from starting
again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from math import inf
from typing import Any

from sqlstress.experiments.watch.spec import (
    CHECKPOINT,
    DELETED,
    JOURNAL,
    READ,
    REPLACED,
    WRITE,
    Course,
    Event,
    Pin,
    Process,
    ReaderWait,
    Watch,
)
from sqlstress.report.results import Holds
from sqlstress.targets.sqlite.lock_holders import (
    MISSING,
    ROLLBACK,
    WAL,
    HoldTracker,
    Lock,
    LockSample,
    TimedSample,
)
from sqlstress.targets.sqlite.open_files import SAME, Opener, Openers
from sqlstress.targets.sqlite.walindex import WalIndex

PINNED_S = 1.0
"""Minimum age of an old snapshot, in seconds, to report its reader."""
MOST_EVENTS, MOST_PINS, MOST_STEPS, MOST_LINES = 20, 10, 600, 8
JOINED_S = 0.1
"""Longest sleep of a waiting writer, in seconds.

A writer that sleeps may miss a shorter gap between two holds, so long holds with such gaps count as one.
"""
FIRST_STEP_S = 0.1
OTHERS = "others"
_JOURNALS = {WAL: "wal", ROLLBACK: "rollback"}
_WORD = 1 << 32


@dataclass(slots=True)
class _PinnedMark:
    """Old snapshot of the WAL: a read mark before the last frame, and its possible readers."""

    since_s: float
    last_s: float
    frame: int
    grew: int = 0
    who: dict[int, None] = field(default_factory=dict)

    def result(self, at_s: float) -> Pin:
        seconds = self.last_s - self.since_s
        return Pin(tuple(self.who), self.frame, self.since_s, seconds, self.grew, self.last_s >= at_s)


@dataclass(slots=True)
class HoldChain:
    """Long holds of the write lock by one process, with gaps so short that waiting writers miss them.

    For --until-held, such holds count as a single hold.
    """

    position: int | None = None
    since_s: float = 0.0
    last_s: float = 0.0
    is_held: bool = False
    _hold: int = 0
    _hold_since_s: float = 0.0

    def add(self, sample: TimedSample, position: int, hold: int) -> None:
        """Add a sample in which process `position` holds the lock. `hold` is the number of its hold."""
        now_s = sample.answered_s
        if position != self.position:
            self._hold_since_s = self.since_s = now_s
        elif hold != self._hold:
            is_long = self.last_s - self._hold_since_s >= JOINED_S
            if not (is_long and now_s - self.last_s <= JOINED_S):
                self.since_s = now_s
            self._hold_since_s = now_s
        self.position, self._hold, self.is_held = position, hold, True
        self.last_s = max(sample.asked_s, self._hold_since_s)


@dataclass(slots=True)
class _Totals:
    """Figures so far, under the names of the fields of `Watch`, which describes them."""

    samples: int = 0
    open_samples: int = 0
    longest_gap_s: float = 0.0
    journal: str = ""
    commits: int | None = None
    page_bytes: int = 0
    frames: int = 0
    frames_now: int = 0
    checkpointed: int = 0
    wal_bytes: int = 0
    wal_bytes_now: int = 0
    hot_journal: bool = False
    openers: int | None = None
    hidden: int = 0
    links: int = 0
    is_mount: bool = False


@dataclass(slots=True)
class _Step:
    samples: int = 0
    held: Counter[int] = field(default_factory=Counter)
    frames: int = 0
    checkpointed: int = 0

    def and_next(self, other: _Step) -> _Step:
        """Return the sum of this time step and the next step, `other`."""
        return _Step(
            self.samples + other.samples,
            self.held + other.held,
            max(self.frames, other.frames),
            other.checkpointed if other.samples else self.checkpointed,
        )


class WatchTally:
    """Result of a watch so far."""

    def __init__(self, position_of: Callable[[int], int]) -> None:
        """`position_of` returns the index of a process from its process ID."""
        self._position_of = position_of
        self._before_s = self._at_s = 0.0
        self._runs: dict[tuple[int, str], HoldTracker] = {}
        """Holds by (index of the process, name of the lock)."""
        self._any_process = HoldTracker()
        """Holds of the write lock by any process."""
        self._chain = HoldChain()
        self._any_reader = HoldTracker()
        """Times during which every sample saw a reader of the WAL."""
        self._waits: Counter[tuple[int, int]] = Counter()
        """Number of samples in which a checkpoint waited, by indices (holder of the write lock, reader)."""
        self._held: set[tuple[int, str]] = set()
        self._pinned: dict[tuple[int, int, int], _PinnedMark] = {}
        self._pins: list[Pin] = []
        self._steps: list[_Step] = []
        self._step_s = FIRST_STEP_S
        self._reading: Counter[int] = Counter()
        self._events: list[Event] = []
        self._other_wals: dict[int, tuple[Opener, Opener]] = {}
        """First and last state of each process that uses a different WAL, by index of the process."""
        self._totals = _Totals()
        self.last: LockSample | None = None
        """Locks and file state at the last sample; None before the first sample."""

    @property
    def longest_now(self) -> tuple[int, float] | None:
        """(Index of the write lock's holder, seconds with the lock); None if the lock is free.

        The seconds begin with the first hold of a `HoldChain`, and include its short gaps.
        """
        chain = self._chain
        return (
            (chain.position, chain.last_s - chain.since_s)
            if chain.is_held and chain.position is not None
            else None
        )

    @property
    def hold(self) -> tuple[int, int] | None:
        """Present hold of the write lock: (index of the process, number of the hold), or None."""
        writers = [position for position, name in self._held if name == WRITE]
        return (writers[0], self._runs[writers[0], WRITE].times) if writers else None

    @property
    def seconds(self) -> float:
        """Time of the last sample, in seconds since the start of the watch."""
        return self._at_s

    @property
    def wal_bytes(self) -> int:
        """Size of the WAL file in bytes, at the last check."""
        return self._totals.wal_bytes_now

    def add(self, sample: TimedSample) -> None:
        """Add a sample of the locks to the result."""
        at_s, look = sample.asked_s, sample.look
        self._before_s, self._at_s = self._at_s, at_s
        totals = self._totals
        totals.samples += 1
        totals.open_samples += look.state in (WAL, ROLLBACK)
        totals.longest_gap_s = max(totals.longest_gap_s, at_s - self._before_s)
        totals.journal = _JOURNALS.get(look.state, totals.journal)
        self._record_changes(at_s, look)
        held = {(self._position_of(lock.pid), lock.name) for lock in look.locks if lock.name != READ}
        for owner in self._held - held:
            self._runs[owner].free(sample)
        for key in held:
            self._runs.setdefault(key, HoldTracker()).add_held(sample, self._before_s, look.changes)
        self._held = held
        writers = [owner for owner, name in held if name == WRITE]
        if writers:
            self._any_process.add_held(sample, self._before_s)
            self._chain.add(sample, writers[0], self._runs[writers[0], WRITE].times)
        else:
            self._any_process.free(sample)
            self._chain.is_held = False
        self._reading.update({self._position_of(lock.pid) for lock in look.locks if lock.name == READ})
        if look.wal:
            self._add_wal_index(sample, look.wal)
        self._add_step(at_s, look, writers)
        self.last = look

    def _record_changes(self, at_s: float, look: LockSample) -> None:
        last = self.last
        if last is None:
            return
        if look.state == MISSING != last.state:
            self._add_event(Event(at_s, DELETED))
        elif look.file != last.file and last.file:
            self._add_event(Event(at_s, REPLACED))
        elif {look.state, last.state} == {WAL, ROLLBACK}:
            self._add_event(Event(at_s, JOURNAL, look.state))
        if (look.state, look.file) == (last.state, last.file) and None not in (look.changes, last.changes):
            assert look.changes is not None and last.changes is not None
            more = (look.changes - last.changes) % _WORD
            # The counter of commits in a new wal-index starts at 0 again. A large difference modulo 2^32
            # shows this, and is ignored.
            self._totals.commits = (self._totals.commits or 0) + (more if more < _WORD // 2 else 0)

    def _add_event(self, event: Event) -> None:
        if len(self._events) < MOST_EVENTS:
            self._events.append(event)

    def _add_wal_index(self, sample: TimedSample, index: WalIndex) -> None:
        look, totals = sample.look, self._totals
        totals.page_bytes, totals.checkpointed = index.page_size, index.checkpointed
        totals.frames, totals.frames_now = max(totals.frames, index.frames), index.frames
        # A reader in the first slot reads only the database file. Such a reader does not prevent a restart of
        # the WAL, and is not counted.
        if any(lock.name == READ and lock.slot for lock in look.locks):
            self._any_reader.add_held(sample, self._before_s)
        else:
            self._any_reader.free(sample)
        self._add_waits(look, index)
        now: dict[tuple[int, int, int], _PinnedMark] = {}
        for lock in look.locks:
            if lock.name != READ or not is_behind(lock, index):
                continue
            key = (look.file, lock.slot, index.marks[lock.slot])
            pinned = self._pinned.get(key) or _PinnedMark(
                sample.answered_s, sample.answered_s, mark_of(lock, index)
            )
            pinned.last_s = max(sample.asked_s, pinned.last_s)
            pinned.grew = max(pinned.grew, index.frames - pinned.frame)
            pinned.who[self._position_of(lock.pid)] = None
            now[key] = pinned
        self._keep_pins(pinned for key, pinned in self._pinned.items() if key not in now)
        self._pinned = now

    def _add_waits(self, look: LockSample, index: WalIndex) -> None:
        """If a checkpoint holds the write lock, count each reader for which it waits."""
        pids = {lock.name: lock.pid for lock in look.locks if lock.name != READ}
        holder = pids.get(WRITE)
        if holder is None or pids.get(CHECKPOINT) != holder:
            return
        is_copied = index.checkpointed == index.frames
        readers = {
            lock.pid
            for lock in look.locks
            if lock.name == READ and (is_behind(lock, index) or (is_copied and lock.slot))
        }
        self._waits.update((self._position_of(holder), self._position_of(pid)) for pid in readers - {holder})

    def _keep_pins(self, ended: Iterable[_PinnedMark]) -> None:
        self._pins += [pinned.result(inf) for pinned in ended if pinned.last_s > pinned.since_s]
        self._pins = sorted(self._pins, key=lambda pin: -pin.seconds)[:MOST_PINS]

    def _add_step(self, at_s: float, look: LockSample, writers: list[int]) -> None:
        number = int(at_s / self._step_s)
        while number >= MOST_STEPS:
            pairs = zip(self._steps[::2], [*self._steps[1::2], _Step()], strict=False)
            self._steps = [step.and_next(next_step) for step, next_step in pairs]
            self._step_s *= 2
            number = int(at_s / self._step_s)
        while len(self._steps) <= number:
            self._steps.append(_Step(checkpointed=self._steps[-1].checkpointed if self._steps else 0))
        step = self._steps[number]
        step.samples += 1
        step.held.update(writers)
        if look.wal:
            step.frames = max(step.frames, look.wal.frames)
            step.checkpointed = look.wal.checkpointed

    @property
    def is_pinned(self) -> bool:
        """Whether a reader has kept a snapshot for PINNED_S or longer.

        If so, the caller lists all its readers for `add_readers`. A sample sees only one holder of a lock.
        """
        return any(self._at_s - pinned.since_s >= PINNED_S for pinned in self._pinned.values())

    def add_readers(self, locks: Iterable[Lock]) -> None:
        """Add processes that share the read lock of an old snapshot: `locks` are all read locks now."""
        slots = {slot: pinned for (_, slot, _), pinned in self._pinned.items()}
        for lock in locks:
            if lock.slot in slots:
                slots[lock.slot].who.setdefault(self._position_of(lock.pid))

    def add_files(self, wal_bytes: int, hot_journal: bool) -> None:
        """Add the current size of the WAL, and whether a dead writer has left its journal."""
        self._totals.wal_bytes = max(self._totals.wal_bytes, wal_bytes)
        self._totals.wal_bytes_now = wal_bytes
        self._totals.hot_journal = hot_journal

    def add_names(self, links: int, is_mount: bool) -> None:
        """Add the number of hard links of the file, and whether the file is a mount point."""
        self._totals.links, self._totals.is_mount = max(self._totals.links, links), is_mount

    def add_openers(self, openers: Openers) -> None:
        """Add the processes that have the database file open now."""
        totals = self._totals
        totals.openers = max(totals.openers or 0, len(openers.seen))
        totals.hidden = max(totals.hidden, openers.hidden)
        for opener in openers.seen:
            if opener.wal != SAME and (position := self._position_of(opener.pid)) >= 0:
                first, _ = self._other_wals.setdefault(position, (opener, opener))
                self._other_wals[position] = first, opener

    def watch(self, blank: Watch, processes: list[Process]) -> Watch:
        """Return the result so far. `blank` is a result with only the options of the watch.

        `processes` has the process with position N at index N.
        """
        locks: dict[int, dict[str, Holds]] = {}
        for (position, name), runs in self._runs.items():
            if position >= 0:
                locks.setdefault(position, {})[name] = Holds(*runs.figures)
        for position, count in self._reading.items():
            locks.setdefault(position, {})[READ] = Holds(count)
        # Sort the processes by samples with the write lock, and convert all indices to the new order.
        described = [
            replace(item, locks=locks.get(position, {}), **self._other_wal_fields(position))
            for position, item in enumerate(processes)
        ]
        order = sorted(range(len(described)), key=lambda position: _weight(described[position]))
        positions = {position: new for new, position in enumerate(order)}
        last_s = self._at_s
        pins = [
            *self._pins,
            *(item.result(last_s) for item in self._pinned.values() if item.last_s > item.since_s),
        ]
        return replace(
            blank,
            **asdict(self._totals),
            seconds=last_s,
            write=Holds(*self._any_process.figures),
            processes=tuple(described[position] for position in order),
            pins=tuple(
                replace(
                    pin,
                    processes=tuple(
                        positions[position] for position in pin.processes if position in positions
                    ),
                )
                for pin in sorted(pins, key=lambda pin: -pin.seconds)[:MOST_PINS]
            ),
            waits=tuple(
                ReaderWait(positions[holder], positions[reader], samples)
                for (holder, reader), samples in self._waits.most_common(MOST_PINS)
                if holder in positions and reader in positions
            ),
            without_gap_s=self._any_reader.longest_s,
            held_too_long=positions.get(blank.held_too_long) if blank.held_too_long is not None else None,
            events=tuple(self._events),
            course=self._course(positions),
        )

    def _other_wal_fields(self, position: int) -> dict[str, Any]:
        if position not in self._other_wals:
            return {}
        first, last = self._other_wals[position]
        writes = (first.wal_bytes, first.written_ns) != (last.wal_bytes, last.written_ns)
        return {"wal": last.wal, "name": last.name, "writes": writes}

    def _course(self, new_positions: dict[int, int]) -> Course:
        total: Counter[int] = Counter()
        for step in self._steps:
            total.update(step.held)
        lines = [position for position, _ in total.most_common(MOST_LINES) if position in new_positions]
        held = {str(new_positions[line]): tuple(step.held[line] for step in self._steps) for line in lines}
        rest = tuple(step.held.total() - sum(step.held[line] for line in lines) for step in self._steps)
        return Course(
            self._step_s,
            tuple(step.samples for step in self._steps),
            {**held, **({OTHERS: rest} if any(rest) else {})},
            tuple(step.frames for step in self._steps),
            tuple(step.checkpointed for step in self._steps),
        )


def mark_of(lock: Lock, index: WalIndex) -> int:
    """Return the last frame of the WAL that a reader sees.

    Return 0 for the first slot (SQLite's read mark 0), whose readers read only the database file.
    """
    return index.marks[lock.slot] if lock.slot else 0


def is_behind(lock: Lock, index: WalIndex) -> bool:
    """Return whether a reader has an old snapshot, so that checkpoints cannot copy newer frames.

    New readers take the newest read mark, so a reader with an older mark began earlier.
    """
    return mark_of(lock, index) < index.frames and (lock.slot > 0 or index.checkpointed < index.frames)


def _weight(process: Process) -> tuple[int, ...]:
    counts = [process.locks[name].samples if name in process.locks else 0 for name in (WRITE, READ)]
    return tuple(-count for count in (*counts, sum(held.samples for held in process.locks.values())))
