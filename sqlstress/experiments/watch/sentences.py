"""Sentences in the reports of watch. Each is a function whose parameters are the facts of a finding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlstress.analysis import wording
from sqlstress.analysis.finding import aside, grave
from sqlstress.analysis.wording import capital, duration, listing, percent, processes
from sqlstress.experiments.watch.spec import DELETED, REPLACED
from sqlstress.statistics.units import digits, format_duration, plural


def watch_held(*, process: str, share: float, longest_ns: float) -> str:
    text = (
        f"{process} held the write lock {percent(share)} of the time, at most {duration(longest_ns)} without "
        "a break."
    )
    return capital(text)


def watch_too_long(*, process: str, now_ns: float, limit: float, gap_ns: float | None = None) -> str:
    gaps = f" (with gaps of at most {duration(gap_ns)})" if gap_ns else ""
    return (
        f"FAILED: {process} has held the write lock for {duration(now_ns)}{gaps}, longer than "
        f"{format_duration(limit)}."
    )


PINNED, LARGE_TRANSACTION, PAST, NO_CHECKPOINT, NO_PAUSE = (
    "pinned",
    "large-transaction",
    "past",
    "no-checkpoint",
    "no-pause",
)
"""Causes of a large WAL."""


def watch_wal_too_large(*, size: int, limit: int, cause: str, live: int, process: str | None = None) -> str:
    causes = {
        PINNED: f"{process} keeps an old snapshot, so most frames cannot be checkpointed: end its "
        "transaction.",
        LARGE_TRANSACTION: f"{process} is writing one large transaction: commit after fewer rows.",
        PAST: f"Only {wording.size(live)} of it are in use: the file keeps the size of an earlier load. "
        "PRAGMA wal_checkpoint(TRUNCATE) shortens it, and journal_size_limit keeps it short.",
        NO_CHECKPOINT: "No checkpoint has copied most of it into the database, and no long reader was seen: "
        "check wal_autocheckpoint and the program that should checkpoint.",
        NO_PAUSE: "It is checkpointed, but readers overlap, so the WAL never starts again: leave a moment "
        "without readers, or run PRAGMA wal_checkpoint(RESTART) with a short busy timeout.",
    }
    text = f"FAILED: the WAL has {wording.size(size)}, more than {wording.size(limit)}."
    return f"{text} {capital(causes.get(cause, ''))}".rstrip()


def watch_free(*, commits: int | None = None) -> str:
    short_commits = (
        (f" There were {plural(commits, 'commit')}, all too short to be seen.") if commits is not None else ""
    )
    return f"Nobody was seen with the write lock.{short_commits}"


def watch_unlocked(*, database: str, openers: int | None = None, hidden: int | None = None) -> str:
    if openers:
        return f"No lock was seen. {processes(openers)} had the database open."
    if openers == 0:
        return f"No process had {database} open."
    advice = ""
    if hidden is not None:
        advice = f" The open files of {processes(hidden)} cannot be read: run sqlstress watch as root."
    return f"No lock was seen on {database}.{advice}"


@grave
def watch_deleted_wal(*, process: str, writes: bool) -> str:
    cause = (
        "The usual cause: it opened and closed the database file by other means (a copy, a hash, "
        "open().close(), a second SQLite library), which dropped its locks."
    )
    if writes:
        return (
            f"FAILED: {process} is writing into a deleted WAL. Its commits are invisible to all other "
            "processes and will be lost. Save its data through its own connection, then restart it. "
            f"{cause}"
        )
    text = f"{process} has a deleted WAL open: what it commits next will be lost. Restart it. {cause}"
    return capital(text)


@grave
def watch_other_wal(*, process: str, name: str, database: str, writes: bool) -> str:
    unseen = f"It and the users of {database} do not see each other's commits"
    if writes:
        return (
            f"FAILED: {process} is writing to this file under another name, {name}, with another WAL. "
            f"{unseen}, and some will be lost. Use one name in all programs."
        )
    return capital(
        f"{process} has this file open under another name, {name}, with another WAL. {unseen}. Use one name "
        "in all programs."
    )


@grave
def watch_names(*, links: int | None = None) -> str:
    links_text = "has several names (hard links)" if links else "is a mount point of its own"
    count = f": {digits(links)}" if links is not None else ""
    return (
        f"The file {links_text}{count}. Each name has its own WAL, and programs that use different "
        "names lose commits. Use one name, and mount the folder instead of the file."
    )


def watch_no_sample() -> str:
    return "Nothing was seen: the watch ended before its first sample."


def watch_often(*, process: str, share: float, longest_ns: float) -> str:
    text = (
        f"{process} takes the write lock again and again: {percent(share)} of the time, at most "
        f"{duration(longest_ns)} each. A waiting writer sleeps up to 100 ms between two attempts and can "
        "miss every gap. Write several rows in each transaction, or pause between transactions."
    )
    return capital(text)


def watch_crowd(*, count: int, command: str, share: float) -> str:
    return (
        f"{processes(count)} like {command} held the write lock {percent(share)} of the time together. "
        "Use fewer of them, or write several rows in each transaction."
    )


def watch_exclusive(*, process: str) -> str:
    text = (
        f"{process} has the database for itself (PRAGMA locking_mode=EXCLUSIVE): nobody else can "
        "read or write it."
    )
    return capital(text)


def watch_blocking_checkpoint(*, process: str, longest_ns: float) -> str:
    text = (
        f"{process} held the write lock during a checkpoint, {duration(longest_ns)} at most: FULL, "
        "RESTART and TRUNCATE keep it while they wait for readers. Use PASSIVE checkpoints, or give this "
        "connection a short busy timeout."
    )
    return capital(text)


def watch_pin(
    *,
    process: str,
    took_ns: float,
    grew: int,
    size: int,
    frame: int,
    before: bool = False,
    lasts: bool = False,
    more: int | None = None,
) -> str:
    rest = f" {plural(more, 'other transaction')} did the same." if more is not None else ""
    text = (
        f"{process} read in one transaction for {duration(took_ns)}{' or longer' if before else ''}. "
        f"The {plural(grew, 'frame')} ({wording.size(size)}) after frame {digits(frame)} "
        f"{'cannot' if lasts else 'could not'} be checkpointed, so the WAL "
        f"{'grows' if lasts else 'grew'}. Fetch all rows or close the cursor, then commit or roll "
        f"back.{rest}"
    )
    return capital(text)


def watch_pending(*, share: float, readers: Sequence[str] | None = None) -> str:
    names = f" (readers: {listing(readers)})" if readers else ""
    return (
        f"A writer that wanted to commit waited for readers {percent(share)} of the time{names}. "
        "In WAL mode readers do not block writers: PRAGMA journal_mode=WAL."
    )


def watch_gaps(*, share: float, longest_ns: float) -> str:
    return (
        f"The write lock was free {percent(share)} of the time. It was once taken for {duration(longest_ns)} "
        "without a gap. Writers do not queue, so one can miss many turns: set every busy timeout much "
        "longer than that."
    )


class CheckpointShare(NamedTuple):
    """Process that held the checkpoint lock."""

    process: str
    share: float
    """Share of the samples in which it held the lock, from 0 to 1."""
    longest_ns: float


def watch_checkpoints(*, by: Sequence[CheckpointShare]) -> str:
    shares = (
        f"{part.process} {percent(part.share)} of the time, {duration(part.longest_ns)} at most"
        for part in by
    )
    return f"Checkpoints: {', '.join(shares)}."


@grave
def watch_hot_journal() -> str:
    return (
        "A writer died in a transaction and left its rollback journal. The next program that opens the "
        "database rolls it back: keep the -journal file beside it."
    )


def watch_event(*, kind: str, at_ns: float, journal: str) -> str:
    after = f"after {duration(at_ns)}"
    if kind == DELETED:
        return f"The file was deleted {after}."
    if kind == REPLACED:
        return f"Another file took its place {after}; the watch went on with that one."
    return f"The journal changed to {journal} {after}."


def watch_not_visible() -> str:
    return (
        "Some locks belong to processes that are not visible here. Run sqlstress watch on the host to "
        "see them."
    )


@aside
def watch_partly(*, share: float) -> str:
    return f"{percent(share)} of the time no process had the database open."


@aside
def watch_rest(*, count: int) -> str:
    return f"Also, {processes(count)} held locks for less time."
