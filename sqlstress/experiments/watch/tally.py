"""From samples to how long who held what: pure arithmetic, which knows neither files nor processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from math import inf
from typing import Any

from sqlstress.experiments.watch.spec import (
    DELETED,
    JOURNAL,
    READ,
    REPLACED,
    WRITE,
    Course,
    Event,
    Pin,
    Process,
    Watch,
)
from sqlstress.report.results import Holds
from sqlstress.targets.sqlite.lock_holders import MISSING, ROLLBACK, WAL, Lock, Look, Runs, Sample
from sqlstress.targets.sqlite.open_files import SAME, Opener, Openers
from sqlstress.targets.sqlite.walindex import WalIndex

PINNED_S = 1.0
"""So long a reader that is behind has to be seen until it is worth a word."""
MOST_EVENTS, MOST_PINS, MOST_STEPS, MOST_LINES = 20, 10, 600, 8
FIRST_STEP_S = 0.1
OTHERS = "others"
_JOURNALS = {WAL: "wal", ROLLBACK: "rollback"}
_WORD = 1 << 32


@dataclass(slots=True)
class _Pinned:
    """A read mark that is behind the WAL's end, as long as somebody holds its lock."""

    since_s: float
    last_s: float
    frame: int
    grew: int = 0
    who: dict[int, None] = field(default_factory=dict)

    def result(self, at_s: float) -> Pin:
        seconds = self.last_s - self.since_s
        return Pin(tuple(self.who), self.frame, self.since_s, seconds, self.grew, self.last_s >= at_s)


@dataclass(slots=True)
class _Totals:
    """Fields of a Watch that each sample changes."""

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
        """Return this step and the next one as one."""
        return _Step(
            self.samples + other.samples,
            self.held + other.held,
            max(self.frames, other.frames),
            other.checkpointed if other.samples else self.checkpointed,
        )


class Tally:
    """What the samples say by now."""

    def __init__(self, place_of: Callable[[int], int]) -> None:
        """`place_of` says which of the processes has a number."""
        self._place_of = place_of
        self._before_s = self._at_s = 0.0
        self._runs: dict[tuple[int, str], Runs] = {}
        """By process and lock."""
        self._anybody = Runs()
        """The write lock, whoever had it."""
        self._held: set[tuple[int, str]] = set()
        self._pinned: dict[tuple[int, int, int], _Pinned] = {}
        self._pins: list[Pin] = []
        self._steps: list[_Step] = []
        self._step_s = FIRST_STEP_S
        self._reading: Counter[int] = Counter()
        self._events: list[Event] = []
        self._strange: dict[int, tuple[Opener, Opener]] = {}
        """Processes with another WAL, by place: as they were seen first and last."""
        self._totals = _Totals()
        self.last: Look | None = None
        """The last sample."""

    @property
    def longest_now(self) -> tuple[int, float] | None:
        """Who holds the write lock at the last sample, by place, and for how long."""
        for who, name in self._held:
            if name == WRITE:
                return who, self._runs[who, name].now_s
        return None

    def add(self, sample: Sample) -> None:
        """Take a sample."""
        at_s, look = sample.asked_s, sample.look
        self._before_s, self._at_s = self._at_s, at_s
        totals = self._totals
        totals.samples += 1
        totals.open_samples += look.state in (WAL, ROLLBACK)
        totals.longest_gap_s = max(totals.longest_gap_s, at_s - self._before_s)
        totals.journal = _JOURNALS.get(look.state, totals.journal)
        self._compare(at_s, look)
        held = {(self._place_of(lock.pid), lock.name) for lock in look.locks if lock.name != READ}
        for who in self._held - held:
            self._runs[who].free(sample)
        for key in held:
            self._runs.setdefault(key, Runs()).seen(sample, self._before_s, look.changes)
        self._held = held
        writers = [who for who, name in held if name == WRITE]
        if writers:
            self._anybody.seen(sample, self._before_s)
        else:
            self._anybody.free(sample)
        self._reading.update({self._place_of(lock.pid) for lock in look.locks if lock.name == READ})
        if look.wal:
            self._take_index(sample, look.wal)
        self._take_step(at_s, look, writers)
        self.last = look

    def _compare(self, at_s: float, look: Look) -> None:
        """Note what happened to the file since the sample before, and what was committed."""
        last = self.last
        if last is None:
            return
        if look.state == MISSING != last.state:
            self._event(Event(at_s, DELETED))
        elif look.file != last.file and last.file:
            self._event(Event(at_s, REPLACED))
        elif {look.state, last.state} == {WAL, ROLLBACK}:
            self._event(Event(at_s, JOURNAL, look.state))
        if (look.state, look.file) == (last.state, last.file) and None not in (look.changes, last.changes):
            assert look.changes is not None and last.changes is not None
            more = (look.changes - last.changes) % _WORD
            # A wal-index that is made anew begins at 0 again.
            self._totals.commits = (self._totals.commits or 0) + (more if more < _WORD // 2 else 0)

    def _event(self, event: Event) -> None:
        if len(self._events) < MOST_EVENTS:
            self._events.append(event)

    def _take_index(self, sample: Sample, index: WalIndex) -> None:
        """Take what the wal-index says, and what read marks are behind it."""
        look, totals = sample.look, self._totals
        totals.page_bytes, totals.checkpointed = index.page_size, index.checkpointed
        totals.frames, totals.frames_now = max(totals.frames, index.frames), index.frames
        now: dict[tuple[int, int, int], _Pinned] = {}
        for lock in look.locks:
            if lock.name != READ or not is_behind(lock, index):
                continue
            key = (look.file, lock.slot, index.marks[lock.slot])
            pinned = self._pinned.get(key) or _Pinned(
                sample.answered_s, sample.answered_s, mark_of(lock, index)
            )
            pinned.last_s = max(sample.asked_s, pinned.last_s)
            pinned.grew = max(pinned.grew, index.frames - pinned.frame)
            pinned.who[self._place_of(lock.pid)] = None
            now[key] = pinned
        self._keep(pinned for key, pinned in self._pinned.items() if key not in now)
        self._pinned = now

    def _keep(self, ended: Iterable[_Pinned]) -> None:
        self._pins += [one.result(inf) for one in ended if one.last_s > one.since_s]
        self._pins = sorted(self._pins, key=lambda pin: -pin.seconds)[:MOST_PINS]

    def _take_step(self, at_s: float, look: Look, writers: list[int]) -> None:
        number = int(at_s / self._step_s)
        while number >= MOST_STEPS:
            pairs = zip(self._steps[::2], [*self._steps[1::2], _Step()], strict=False)
            self._steps = [one.and_next(other) for one, other in pairs]
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
        """Whether somebody pins the WAL for so long that it matters who else does."""
        return any(self._at_s - pinned.since_s >= PINNED_S for pinned in self._pinned.values())

    def add_readers(self, locks: Iterable[Lock]) -> None:
        """Take a list of all who share a read lock just now."""
        slots = {slot: pinned for (_, slot, _), pinned in self._pinned.items()}
        for lock in locks:
            if lock.slot in slots:
                slots[lock.slot].who.setdefault(self._place_of(lock.pid))

    def add_files(self, wal_bytes: int, hot_journal: bool) -> None:
        """Take what lies beside the file just now."""
        self._totals.wal_bytes = max(self._totals.wal_bytes, wal_bytes)
        self._totals.wal_bytes_now = wal_bytes
        self._totals.hot_journal = hot_journal

    def add_names(self, links: int, is_mount: bool) -> None:
        """Add the number of hard links of the file, and whether it is a mount point."""
        self._totals.links, self._totals.is_mount = max(self._totals.links, links), is_mount

    def add_openers(self, openers: Openers) -> None:
        """Add the processes that have the file open just now."""
        totals = self._totals
        totals.openers = max(totals.openers or 0, len(openers.seen))
        totals.hidden = max(totals.hidden, openers.hidden)
        for opener in openers.seen:
            if opener.wal != SAME and (place := self._place_of(opener.pid)) >= 0:
                first, _ = self._strange.setdefault(place, (opener, opener))
                self._strange[place] = first, opener

    def watch(self, blank: Watch, processes: list[Process]) -> Watch:
        """Return what was found by now; `blank` says of what, and how it was to be watched."""
        locks: dict[int, dict[str, Holds]] = {}
        for (who, name), runs in self._runs.items():
            if who >= 0:
                locks.setdefault(who, {})[name] = Holds(*runs.figures)
        for place, count in self._reading.items():
            locks.setdefault(place, {})[READ] = Holds(count)
        # First who was seen most with the write lock; what names them by their place follows.
        found = [
            replace(one, locks=locks.get(place, {}), **self._strange_wal(place))
            for place, one in enumerate(processes)
        ]
        order = sorted(range(len(found)), key=lambda place: _weight(found[place]))
        places = {place: new for new, place in enumerate(order)}
        last_s = self._at_s
        pins = [
            *self._pins,
            *(one.result(last_s) for one in self._pinned.values() if one.last_s > one.since_s),
        ]
        return replace(
            blank,
            **asdict(self._totals),
            seconds=last_s,
            write=Holds(*self._anybody.figures),
            processes=tuple(found[place] for place in order),
            pins=tuple(
                replace(pin, processes=tuple(places[place] for place in pin.processes if place in places))
                for pin in sorted(pins, key=lambda pin: -pin.seconds)[:MOST_PINS]
            ),
            held_too_long=places.get(blank.held_too_long) if blank.held_too_long is not None else None,
            events=tuple(self._events),
            course=self._course(places),
        )

    def _strange_wal(self, place: int) -> dict[str, Any]:
        """Return the fields of a Process on its WAL, if it is not the WAL of the watched path."""
        if place not in self._strange:
            return {}
        first, last = self._strange[place]
        writes = (first.wal_bytes, first.written_ns) != (last.wal_bytes, last.written_ns)
        return {"wal": last.wal, "name": last.name, "writes": writes}

    def _course(self, places: dict[int, int]) -> Course:
        total: Counter[int] = Counter()
        for step in self._steps:
            total.update(step.held)
        lines = [place for place, _ in total.most_common(MOST_LINES) if place in places]
        held = {str(places[line]): tuple(step.held[line] for step in self._steps) for line in lines}
        rest = tuple(step.held.total() - sum(step.held[line] for line in lines) for step in self._steps)
        return Course(
            self._step_s,
            tuple(step.samples for step in self._steps),
            {**held, **({OTHERS: rest} if any(rest) else {})},
            tuple(step.frames for step in self._steps),
            tuple(step.checkpointed for step in self._steps),
        )


def mark_of(lock: Lock, index: WalIndex) -> int:
    """Return the last frame of the WAL that a reader can see: of the first slot none."""
    return index.marks[lock.slot] if lock.slot else 0


def is_behind(lock: Lock, index: WalIndex) -> bool:
    """Return whether a reader keeps frames from being copied that were committed after it began.

    Whoever begins takes the newest mark, so one that is behind has begun before.
    """
    return mark_of(lock, index) < index.frames and (lock.slot > 0 or index.checkpointed < index.frames)


def _weight(process: Process) -> tuple[int, ...]:
    counts = [process.locks[name].samples if name in process.locks else 0 for name in (WRITE, READ)]
    return tuple(-count for count in (*counts, sum(one.samples for one in process.locks.values())))
