"""Sentences in the reports of watch: one function per sentence, whose parameters are its facts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlstress.analysis import wording
from sqlstress.analysis.finding import aside, grave
from sqlstress.analysis.wal_growth import OVERLAP, REUSED, SNAPSHOT, UNCOPIED
from sqlstress.analysis.wording import capital, duration, listing, percent, processes
from sqlstress.experiments.watch.spec import DELETED, REPLACED
from sqlstress.statistics.units import digits, format_duration, plural


def watch_held(*, process: str, share: float, longest_ns: float) -> str:
    return capital(
        f"{process} held the write lock {percent(share)} of the time, at most {duration(longest_ns)} without "
        "a break."
    )


def watch_too_long(*, process: str, now_ns: float, limit: float, short_gaps: bool = False) -> str:
    gaps = ", with gaps of up to 100 ms that waiting writers can miss" if short_gaps else ""
    return (
        f"FAILED: {process} has held the write lock for {duration(now_ns)}, longer than "
        f"{format_duration(limit)}{gaps}."
    )


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
def watch_deleted_wal(*, process: str, writes: bool, replaced_ns: float | None = None) -> str:
    cause = (
        "Usual causes: a program or script deleted -wal, which nothing but SQLite may do; or this process "
        "opened and closed the database file by other means (a copy, a hash, open().close(), a second SQLite "
        "library), which dropped its locks."
    )
    if replaced_ns is not None:
        cause = (
            f"The cause: another file took the place of the database after {duration(replaced_ns)}, while "
            "this process had the old one open. Stop all users before you replace a database, or restore "
            "into it with .restore or the backup API. Run PRAGMA integrity_check: the old -wal can damage "
            "the new file."
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
    return capital(
        f"{process} takes the write lock again and again: {percent(share)} of the time, at most "
        f"{duration(longest_ns)} each. A waiting writer sleeps up to 100 ms between two attempts and can "
        "miss every gap. Write several rows in each transaction, or pause between transactions."
    )


def watch_crowd(*, count: int, command: str, share: float) -> str:
    return (
        f"{processes(count)} like {command} held the write lock {percent(share)} of the time together. "
        "Use fewer of them, or write several rows in each transaction."
    )


def watch_exclusive(*, process: str) -> str:
    return capital(
        f"{process} has the database for itself (PRAGMA locking_mode=EXCLUSIVE): nobody else can "
        "read or write it."
    )


def watch_blocking_checkpoint(
    *, process: str, longest_ns: float, share: float = 0.0, readers: Sequence[str] | None = None
) -> str:
    if readers:
        return capital(
            f"{process} held the write lock {percent(share)} of the time, at most {duration(longest_ns)} "
            f"without a break, because its checkpoint waited for a reader: {listing(readers)}. FULL, RESTART "
            "and TRUNCATE wait with the lock. Use PASSIVE, give this connection a short busy timeout, or end "
            "the read transaction sooner."
        )
    return capital(
        f"{process} held the write lock during a checkpoint, {duration(longest_ns)} at most: FULL, "
        "RESTART and TRUNCATE keep it while they wait for readers. Use PASSIVE checkpoints, or give this "
        "connection a short busy timeout."
    )


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
    return capital(
        f"{process} read in one transaction for {duration(took_ns)}{' or longer' if before else ''}. "
        f"The {plural(grew, 'frame')} ({wording.size(size)}) after frame {digits(frame)} "
        f"{'cannot' if lasts else 'could not'} be checkpointed, so the WAL "
        f"{'grows' if lasts else 'grew'}. Fetch all rows or close the cursor, then commit or roll "
        f"back.{rest}"
    )


_WAL_REMEDIES = {
    REUSED: "It grew earlier and is reused now, so nothing is wrong. wal_checkpoint(TRUNCATE) or "
    "journal_size_limit shrinks the file.",
    UNCOPIED: "Most of them are not checkpointed, and no long reader was seen: automatic checkpoints are "
    "off, or a transaction was large. Run wal_checkpoint more often.",
}


def watch_wal(
    *,
    kind: str,
    file_size: int,
    live: int,
    live_size: int,
    most: int,
    limit: int | None = None,
    gap_ns: float | None = None,
    readers: Sequence[str] | None = None,
    took_ns: float | None = None,
    before: bool = False,
    writer: str | None = None,
    commits: int | None = None,
) -> str:
    names = listing(readers) if readers else "a process"
    reached = (
        f"FAILED: the WAL has reached {wording.size(limit)}" if limit is not None else "The WAL is large"
    )
    start = (
        f"{reached}: the file has {wording.size(file_size)}, with {plural(live, 'live frame')} "
        f"({wording.size(live_size)}); at most {digits(most)} were live."
    )
    if kind == REUSED and writer:
        return f"{start} {capital(writer)} is writing the rest in one transaction. Commit after fewer rows."
    if kind == SNAPSHOT and took_ns is not None:
        return (
            f"{start} {capital(names)} read in one transaction for {duration(took_ns)}"
            f"{' or longer' if before else ''}, and frames after its snapshot cannot be checkpointed. Fetch "
            "all rows or close the cursor, then commit or roll back."
        )
    if kind == OVERLAP and gap_ns is not None:
        return (
            f"{start} Most of them are checkpointed, but for {duration(gap_ns)} no sample was without a "
            f"reader ({names}), so the WAL does not start again. Leave gaps of some ms without a reader, or "
            "run wal_checkpoint(RESTART) with a short timeout."
        )
    if kind == UNCOPIED and commits is not None:
        return (
            f"{start} Most of them are not checkpointed, no long reader was seen, and "
            f"{plural(commits, 'commit')} began no checkpoint: automatic checkpoints are off or "
            "rare (wal_autocheckpoint). Leave them on, or run wal_checkpoint regularly."
        )
    return f"{start} {_WAL_REMEDIES.get(kind, 'The watch was too short to show the cause.')}"


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
    """A process, and its share of the time with the checkpoint lock of a WAL."""

    process: str
    share: float
    """Share of the samples in which the process held the checkpoint lock, from 0 to 1."""
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
