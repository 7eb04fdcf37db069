"""Sentences of watch, a function each; its parameters are the facts of a finding."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstress.analysis import wording
from sqlstress.analysis.finding import Finding, aside, grave, texts
from sqlstress.analysis.wording import capital, duration, listing, percent, processes
from sqlstress.statistics.units import format_duration, plural, whole


def watch_what(
    *,
    database: str,
    took_ns: float,
    samples: int,
    journal: str | None = None,
    commits: int | None = None,
) -> str:
    journal_part = f", journal {journal}" if journal else ""
    commits_part = f", {plural(commits, 'commit')}" if commits is not None else ""
    return (
        f"Watched {database} from outside for {duration(took_ns)}: "
        f"{plural(samples, 'sample')}{journal_part}{commits_part}."
    )


def watch_wal(
    *,
    frames: int,
    size: int,
    most: int,
    most_size: int,
    share: float | None = None,
    file: int | None = None,
) -> str:
    share_part = f", {percent(share)} of them checkpointed" if share is not None else ""
    file_part = f"; file size {wording.size(file)}" if file is not None else ""
    return (
        f"WAL at the end: {plural(frames, 'live frame')} ({wording.size(size)}){share_part}{file_part}. "
        f"At most {plural(most, 'live frame')} ({wording.size(most_size)})."
    )


def watch_process(*, pid: int, command: str | None = None, gone: bool = False) -> str:
    command_part = f" ({command})" if command else ""
    return f"process {pid}{command_part}{', which has ended,' if gone else ''}"


def watch_elsewhere() -> str:
    return "a process of another container"


def watch_readers(*, first: Finding, others: int | None = None) -> str:
    others_part = f" and {whole(others)} more" if others is not None else ""
    return f"{first.text}{others_part}"


def watch_held(*, process: Finding, share: float, longest: Finding) -> str:
    text = (
        f"{process.text} held the write lock {percent(share)} of the time, at most {longest.text} without "
        "a break."
    )
    return capital(text)


def watch_too_long(*, process: Finding, now_ns: float, limit: float) -> str:
    return (
        f"FAILED: {process.text} has held the write lock for {duration(now_ns)}, longer than "
        f"{format_duration(limit)}."
    )


def watch_free(*, commits: int | None = None) -> str:
    commits_part = (
        (f" There were {plural(commits, 'commit')}, all too short to be seen.") if commits is not None else ""
    )
    return f"Nobody was seen with the write lock.{commits_part}"


def watch_closed(*, database: str) -> str:
    return f"No process had {database} open."


def watch_idle(*, openers: int) -> str:
    return f"No lock was seen. {processes(openers)} had the database open."


def watch_unseen(*, database: str, hidden: int | None = None) -> str:
    hidden_part = (
        (f" The open files of {processes(hidden)} cannot be read: run sqlstress watch as root.")
        if hidden is not None
        else ""
    )
    return f"No lock was seen on {database}.{hidden_part}"


@grave
def watch_lost_deleted(*, process: Finding) -> str:
    return (
        f"FAILED: {process.text} is writing into a deleted WAL. Its commits are invisible to all other "
        "processes and will be lost. Save its data through its own connection, then restart it. The "
        "usual cause: it opened and closed the database file by other means (a copy, a hash, "
        "open().close(), a second SQLite library), which dropped its locks."
    )


@grave
def watch_deleted_wal(*, process: Finding) -> str:
    text = (
        f"{process.text} has a deleted WAL open: what it commits next will be lost. Restart it. The usual "
        "cause: it opened and closed the database file by other means (a copy, a hash, open().close(), a "
        "second SQLite library), which dropped its locks."
    )
    return capital(text)


@grave
def watch_lost_other(*, process: Finding, name: str, database: str) -> str:
    return (
        f"FAILED: {process.text} is writing to this file under another name, {name}, with another WAL. It "
        f"and the users of {database} do not see each other's commits, and some will be lost. Use one "
        "name in all programs."
    )


@grave
def watch_other_wal(*, process: Finding, name: str, database: str) -> str:
    text = (
        f"{process.text} has this file open under another name, {name}, with another WAL. It and the "
        f"users of {database} do not see each other's commits. Use one name in all programs."
    )
    return capital(text)


@grave
def watch_names(*, links: int | None = None) -> str:
    links_text = "has several names (hard links)" if links else "is a mount point of its own"
    links_part = f": {whole(links)}" if links is not None else ""
    return (
        f"The file {links_text}{links_part}. Each name has its own WAL, and programs that use different "
        "names lose commits. Use one name, and mount the folder instead of the file."
    )


def watch_no_sample() -> str:
    return "Nothing was seen: the watch ended before its first sample."


def watch_often(*, process: Finding, share: float, longest: Finding) -> str:
    text = (
        f"{process.text} takes the write lock again and again: {percent(share)} of the time, at most "
        f"{longest.text} each. A waiting writer sleeps up to 100 ms between two attempts and can miss "
        "every gap. Write several rows in each transaction, or pause between transactions."
    )
    return capital(text)


def watch_crowd(*, count: int, command: str, share: float) -> str:
    return (
        f"{processes(count)} like {command} held the write lock {percent(share)} of the time together. "
        "Use fewer of them, or write several rows in each transaction."
    )


def watch_exclusive(*, process: Finding) -> str:
    text = (
        f"{process.text} has the database for itself (PRAGMA locking_mode=EXCLUSIVE): nobody else can "
        "read or write it."
    )
    return capital(text)


def watch_blocking_checkpoint(*, process: Finding, longest_ns: float) -> str:
    text = (
        f"{process.text} held the write lock during a checkpoint, {duration(longest_ns)} at most: FULL, "
        "RESTART and TRUNCATE keep it while they wait for readers. Use PASSIVE checkpoints, or give this "
        "connection a short busy timeout."
    )
    return capital(text)


def watch_pin(
    *,
    process: Finding,
    took_ns: float,
    grew: int,
    size: int,
    frame: int,
    before: bool = False,
    lasts: bool = False,
    more: int | None = None,
) -> str:
    more_part = f" {plural(more, 'other transaction')} did the same." if more is not None else ""
    text = (
        f"{process.text} read in one transaction for {duration(took_ns)}{' or longer' if before else ''}. "
        f"The {plural(grew, 'frame')} ({wording.size(size)}) after frame {whole(frame)} "
        f"{'cannot' if lasts else 'could not'} be checkpointed, so the WAL "
        f"{'grows' if lasts else 'grew'}. Fetch all rows or close the cursor, then commit or roll "
        f"back.{more_part}"
    )
    return capital(text)


def watch_pending(*, share: float, readers: Sequence[Finding] | None = None) -> str:
    readers_part = f" (readers: {listing(texts(readers))})" if readers else ""
    return (
        f"A writer that wanted to commit waited for readers {percent(share)} of the time{readers_part}. "
        "In WAL mode readers do not block writers: PRAGMA journal_mode=WAL."
    )


def watch_gaps(*, share: float, longest: Finding) -> str:
    return (
        f"The write lock was free {percent(share)} of the time. It was once taken for {longest.text} "
        "without a gap. Writers do not queue, so one can miss many turns: set every busy timeout much "
        "longer than that."
    )


def watch_checkpoints(*, by: Sequence[Finding]) -> str:
    return f"Checkpoints: {', '.join(texts(by))}."


def watch_checkpointer(*, process: Finding, share: float, longest: Finding) -> str:
    return f"{process.text} {percent(share)} of the time, {longest.text} at most"


@grave
def watch_hot_journal() -> str:
    return (
        "A writer died in a transaction and left its rollback journal. The next program that opens the "
        "database rolls it back: keep the -journal file beside it."
    )


def watch_deleted(*, at_ns: float, journal: str | None = None) -> str:
    return f"The file was deleted after {duration(at_ns)}."


def watch_replaced(*, at_ns: float, journal: str | None = None) -> str:
    return f"Another file took its place after {duration(at_ns)}; the watch went on with that one."


def watch_journal(*, journal: str, at_ns: float) -> str:
    return f"The journal changed to {journal} after {duration(at_ns)}."


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


def watch_line(*, at: float, state: Finding, wal: Finding | None = None, pin: Finding | None = None) -> str:
    wal_part = f"; {wal.text}" if wal else ""
    pin_part = f", {pin.text}" if pin else ""
    return f"{at:.1f}s: {state.text}{wal_part}{pin_part}"


def watch_line_held(*, process: Finding, now_ns: float) -> str:
    return f"{process.text} holds the write lock for {duration(now_ns)}"


def watch_line_free() -> str:
    return "write lock free"


def watch_line_lost(*, process: Finding) -> str:
    return f"{process.text} is writing into another WAL, which the others do not see"


def watch_line_closed(*, database: str) -> str:
    return f"no process has {database} open; waiting"


def watch_line_wal(*, frames: int, checkpointed: int) -> str:
    return f"WAL {plural(frames, 'frame')}, {whole(checkpointed)} checkpointed"


def watch_line_pin(*, took_ns: float, process: Finding) -> str:
    return f"pinned for {duration(took_ns)} by {process.text}"
