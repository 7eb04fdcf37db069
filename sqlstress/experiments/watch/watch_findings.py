"""What a watch says: who held the write lock, what kept a WAL from being reset, who checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import PurePosixPath

from sqlstress.analysis.finding import PROVED, UNPROVED, WRONG, Conclusion, Finding
from sqlstress.analysis.lock_samples import LONG_S, length, share
from sqlstress.experiments.watch.results import (
    CHECKPOINT,
    DELETED,
    EXCLUSIVE,
    PENDING,
    READ,
    REPLACED,
    WRITE,
    Pin,
    Process,
    Watch,
)
from sqlstress.report.lock_holds import Holds
from sqlstress.statistics.units import NS_PER_S
from sqlstress.user_work.messages import kind_of

OFTEN = 0.5
"""Share of the time from which on a process that holds the lock only briefly keeps it from others, too."""
WORTH_TELLING = 0.01
"""Share of the time from which on a lock is worth a sentence."""
PINNED_S = 1.0
CHECKPOINT_S = 0.1
"""A pin, a checkpoint with the write lock, that are worth a sentence."""
TOGETHER = 0.8
"""Of two locks that are held together, the share of the one's time that the other is held at least."""
MOST_NAMED = 3
"""So many processes are named for one thing; the table has more."""
_FRAME_HEADER = 24
_LONGEST_WORD, _LONGEST_CALL = 40, 60
_NOBODY = Process(0)


def holds(process: Process, lock: str) -> Holds:
    """Return how a process held a lock."""
    return process.locks.get(lock, Holds())


def process_at(watch: Watch, place: int | None) -> Process:
    """Return a process by its place."""
    return watch.processes[place] if place is not None and 0 <= place < len(watch.processes) else _NOBODY


def called(process: Process) -> str:
    """Return a command in short: programs and files without their folders."""
    words = [PurePosixPath(word).name if word.startswith("/") else word for word in process.command]
    short = " ".join(
        word if len(word) <= _LONGEST_WORD else f"{word[:_LONGEST_WORD]}…" for word in words if word
    )
    return short if len(short) <= _LONGEST_CALL else f"{short[: _LONGEST_CALL - 1]}…"


def named(process: Process) -> Finding:
    """Return which process it is."""
    if process.pid <= 0:
        return Finding("watch-elsewhere")
    return Finding("watch-process", pid=process.pid, command=called(process), gone=process.gone)


def pinned(watch: Watch, pin: Pin) -> Finding:
    """Return who is behind: the one that was seen first, and how many more."""
    others = len(pin.processes) - 1
    first = named(process_at(watch, pin.processes[0] if pin.processes else None))
    return Finding("watch-readers", first=first, others=others if others > 0 else None)


def bytes_of(watch: Watch, frames: int) -> int:
    """Return how many bytes of a WAL some frames are."""
    return frames * (watch.page_bytes + _FRAME_HEADER)


def conclusion(watch: Watch) -> Conclusion:
    """Return who held the write lock most, or too long."""
    asked_s = watch.asked.until_held_s
    if watch.held_too_long is not None:
        process = process_at(watch, watch.held_too_long)
        now_ns = holds(process, WRITE).now_s * NS_PER_S
        finding = Finding("watch-too-long", process=named(process), now_ns=now_ns, limit=asked_s)
        return Conclusion(WRONG, finding)
    if not watch.samples:
        return Conclusion(UNPROVED, Finding("watch-no-sample"))
    writer = watch.processes[0] if watch.processes else _NOBODY
    own = holds(writer, WRITE)
    if own.samples:
        finding = Finding(
            "watch-held",
            process=named(writer),
            share=share(own.samples, watch.samples),
            longest=length(own, watch.asked.rate),
        )
    elif watch.open_samples:
        finding = Finding("watch-free", commits=watch.commits or None)
    else:
        finding = Finding("watch-closed", database=watch.database)
    return Conclusion(PROVED, finding)


def findings(watch: Watch) -> Iterator[Finding]:
    """Yield what is said beside that."""
    if watch.error:
        yield Finding("ended-early", rounds=None, reason=watch.error.removesuffix("."))
    if watch.hot_journal:
        yield Finding("watch-hot-journal")
    yield from islice(_writers(watch), MOST_NAMED)
    yield from _crowds(watch)
    yield from _pins(watch)
    yield from _waiting_for_readers(watch)
    yield from _gaps(watch)
    yield from _checkpoints(watch)
    yield from _events(watch)
    if any(process.pid <= 0 for process in watch.processes):
        yield Finding("watch-not-visible")
    if 0 < watch.open_samples < watch.samples:
        yield Finding("watch-partly", share=1 - share(watch.open_samples, watch.samples))


def _writers(watch: Watch) -> Iterator[Finding]:
    """Yield who keeps others from writing, and what helps."""
    for process in watch.processes:
        own = holds(process, WRITE)
        held = share(own.samples, watch.samples)
        alone = holds(process, EXCLUSIVE)
        if alone.samples and alone.longest_s >= LONG_S and not watch.open_samples:
            yield Finding("watch-exclusive", process=named(process))
        elif _checkpoints_with_the_lock(process):
            longest_ns = holds(process, CHECKPOINT).longest_s * NS_PER_S
            yield Finding("watch-blocking-checkpoint", process=named(process), longest_ns=longest_ns)
        elif own.longest_s >= LONG_S:
            longest_ns = own.longest_s * NS_PER_S
            yield Finding("long-write", process=named(process), longest_ns=longest_ns, lasts=own.now_s > 0)
        elif held >= OFTEN:
            yield Finding(
                "watch-often", process=named(process), share=held, longest=length(own, watch.asked.rate)
            )


def _crowds(watch: Watch) -> Iterator[Finding]:
    """Yield which program keeps others from writing by many processes, of which none does so alone."""
    programs: dict[tuple[str, ...], list[Process]] = {}
    for process in watch.processes:
        if holds(process, WRITE).samples and process.command:
            programs.setdefault(tuple(map(kind_of, process.command)), []).append(process)
    for own in programs.values():
        held = [share(holds(process, WRITE).samples, watch.samples) for process in own]
        if max(held) < OFTEN <= sum(held):
            yield Finding("watch-crowd", count=len(own), command=called(own[0]), share=sum(held))


def _checkpoints_with_the_lock(process: Process) -> bool:
    """Return whether the longest hold of the write lock was that of a checkpoint which waited."""
    write, checkpoint = holds(process, WRITE), holds(process, CHECKPOINT)
    return (
        checkpoint.longest_s >= CHECKPOINT_S
        and write.longest_s >= TOGETHER * checkpoint.longest_s
        and abs(write.longest_at_s - checkpoint.longest_at_s) <= CHECKPOINT_S
    )


def _pins(watch: Watch) -> Iterator[Finding]:
    worst = [pin for pin in watch.pins if pin.seconds >= PINNED_S and pin.grew_frames > 0]
    if not worst:
        return
    pin = worst[0]
    yield Finding(
        "watch-pin",
        process=pinned(watch, pin),
        took_ns=pin.seconds * NS_PER_S,
        frame=pin.frame,
        grew=pin.grew_frames,
        size=bytes_of(watch, pin.grew_frames),
        before=pin.since_s * max(1, watch.asked.rate) <= 2,
        lasts=pin.lasts,
        more=len(worst) - 1 or None,
    )


def _waiting_for_readers(watch: Watch) -> Iterator[Finding]:
    """Yield who waits with a rollback journal until others have read."""
    waiting = sum(holds(process, PENDING).samples for process in watch.processes)
    if share(waiting, watch.samples) < WORTH_TELLING:
        return
    readers = tuple(
        named(one)
        for one in watch.processes
        if share(holds(one, READ).samples, watch.samples) >= WORTH_TELLING
    )
    yield Finding("watch-pending", share=share(waiting, watch.samples), readers=readers[:MOST_NAMED])


def _gaps(watch: Watch) -> Iterator[Finding]:
    """Yield when a writer that waits could have had the lock."""
    held = share(watch.write.samples, watch.samples)
    if held < 0.1 or not watch.open_samples:
        return
    yield Finding("watch-gaps", share=max(0.0, 1 - held), longest=length(watch.write, watch.asked.rate))


def _checkpoints(watch: Watch) -> Iterator[Finding]:
    own = [
        Finding(
            "watch-checkpointer",
            process=named(process),
            share=part,
            longest=length(holds(process, CHECKPOINT), watch.asked.rate),
        )
        for process in watch.processes
        if (part := share(holds(process, CHECKPOINT).samples, watch.samples)) >= WORTH_TELLING
    ]
    if own:
        yield Finding("watch-checkpoints", by=tuple(own[:MOST_NAMED]))


def _events(watch: Watch) -> Iterator[Finding]:
    codes = {DELETED: "watch-deleted", REPLACED: "watch-replaced"}
    for event in watch.events:
        at_ns = event.at_s * NS_PER_S
        yield Finding(codes.get(event.what, "watch-journal"), at_ns=at_ns, journal=event.journal)
