"""Sentences of kv, a function each; its parameters are the facts of a finding."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstress.analysis.finding import Finding, grave, texts
from sqlstress.analysis.wording import duration, listing, percent, processes, size
from sqlstress.statistics.units import format_duration, plural, whole


def where_processor(*, where: str, share: float) -> str:
    return (
        f"At {where}, operations wait for a processor {percent(share)} of their time, more than for "
        "anything else. Use fewer processes, down to one per processor, to make operations shorter."
    )


def where_slowest(
    *,
    where: str,
    count: int,
    fastest_ns: float,
    parts: Sequence[Finding],
    remedies: Sequence[Finding] | None = None,
) -> str:
    remedies_part = f" {' '.join(texts(remedies))}" if remedies else ""
    return (
        f"Slowest 1% of the operations that took a lock, at {where}: {plural(count, 'operation')} of "
        f"{duration(fastest_ns)} or longer. Their time: {listing(texts(parts))}.{remedies_part}"
    )


def slowest_behind(*, share: float, what: str, whose: str) -> str:
    return f"{percent(share)} waiting for {what} of {whose}"


def slowest_asleep(*, share: float) -> str:
    return f"{percent(share)} asleep while the lock was free"


def slowest_checkpoint(*, share: float) -> str:
    return f"{percent(share)} in their own checkpoints"


def slowest_sync(*, share: float) -> str:
    return f"{percent(share)} in their own syncs"


def slowest_own(*, share: float) -> str:
    return f"{percent(share)} in their other work, including waits for a processor"


def remedy_sleep(*, ways: Sequence[Finding]) -> str:
    return f"To sleep less, use {listing(texts(ways), 'or')}."


def remedy_checkpointer() -> str:
    return "Use --checkpointer passive to checkpoint in a separate process; the WAL grows meanwhile."


def remedy_syncs(*, ways: Sequence[Finding]) -> str:
    return f"To sync less, use {listing(texts(ways), 'or')}."


def way_batch() -> str:
    return "more rows per transaction (--batch)"


def way_normal() -> str:
    return "--synchronous normal (a power failure can then lose the last commits)"


def checkpoint_starvation(*, where: str, stuck: int, pinned: bool = False) -> str:
    pinned_text = (
        ("The pinned reader holds its snapshot. In your application, look for a transaction that stays open.")
        if pinned
        else "A reader keeps its snapshot open: find it and end its transaction sooner."
    )
    return (
        f"Checkpoints starved at {where}. Up to {whole(stuck)} in a row left frames in the WAL and made "
        f"no progress, with or without a busy result. {pinned_text}"
    )


def busy_checkpoints(*, busy: int, made: int, mode: str, where: str, longest_ns: float) -> str:
    return (
        f"{whole(busy)} of {plural(made, 'checkpoint')} ({mode}) at {where} returned busy, after up to "
        f"{duration(longest_ns)}. A reader blocked them, or the write lock was taken. While such a "
        "checkpoint waits for a reader, it holds the write lock and nobody can write."
    )


def large_wal(
    *,
    largest: int,
    where: str,
    times: int,
    frames: int,
    snapshot: bool = False,
    passive: bool = False,
    seldom: bool = False,
    stays: bool = False,
) -> str:
    snapshot_text = (
        "The WAL cannot restart while a snapshot stays open: find the long reader." if snapshot else ""
    )
    passive_text = (
        ("After a PASSIVE checkpoint the WAL restarts only if nobody has written meanwhile: use RESTART.")
        if passive
        else ""
    )
    seldom_text = "Checkpoint more often (--checkpoint-interval)." if seldom else ""
    stays_text = " Only a TRUNCATE checkpoint or PRAGMA journal_size_limit shrinks the file." if stays else ""
    return (
        f"A WAL grew to {size(largest)} at {where}. That is over {whole(times)} times the {whole(frames)} "
        "pages at which SQLite checkpoints by default. "
        f"{snapshot_text}{passive_text}{seldom_text}{stays_text}"
    )


def usual_timeout(*, count: int, where: str, usual_s: int, again: bool = False) -> str:
    return (
        f"{plural(count, 'operation')} at {where} waited longer than {whole(usual_s)} s. With the usual "
        f"busy timeout of {whole(usual_s)} s an application {'could' if again else 'would'} have seen "
        f'"database is locked": try --busy-timeout {whole(usual_s)}s.'
    )


def usual_timeout_hidden(*, where: str, longest_ns: float, window_s: int, usual_s: int) -> str:
    return (
        f"An operation at {where} waited for the whole window, up to {duration(longest_ns)}. Use "
        f"--duration {whole(window_s)}s to see whether it would wait longer than the usual busy timeout "
        f"of {whole(usual_s)} s."
    )


def usual_timeout_likely(
    *,
    usual_s: int,
    where: str,
    starved: int,
    window_s: float,
    enough_s: int,
    extra_ns: float | None = None,
    table_ns: float | None = None,
) -> str:
    return (
        f"An operation may wait longer than {whole(usual_s)} s, the usual busy timeout, and fail with "
        f'"database is locked". At {where}, {processes(starved)} waited for the whole of an extra window '
        f"of {format_duration(window_s)}, which is not in the table. Use --duration {whole(enough_s)}s to "
        "count such waits."
    )


def usual_timeout_no_sign(
    *,
    usual_s: int,
    where: str,
    table_ns: float,
    extra_ns: float,
    window_s: float,
    enough_s: int | None = None,
    starved: int | None = None,
) -> str:
    return (
        f"No sign of waits over {whole(usual_s)} s, the usual busy timeout: at {where}, the longest wait "
        f"was {duration(table_ns)}, and {duration(extra_ns)} in an extra window of "
        f"{format_duration(window_s)}."
    )


def usual_timeout_unclear(
    *,
    usual_s: int,
    where: str,
    table_ns: float,
    extra_ns: float,
    window_s: float,
    enough_s: int,
    starved: int | None = None,
) -> str:
    return (
        f"Cannot tell whether an operation would wait longer than {whole(usual_s)} s, the usual busy "
        f"timeout. At {where}, the longest wait was {duration(table_ns)} in the table's windows and "
        f"{duration(extra_ns)} in an extra window of {format_duration(window_s)}. Use --duration "
        f"{whole(enough_s)}s."
    )


def p99_uneven(*, where: str, kind: str, all_ns: float, worst_ns: float) -> str:
    return (
        f"At {where}, 99% of all {kind}s took at most {duration(all_ns)}. Shares were uneven: in the "
        f"slowest process, p99 was {duration(worst_ns)} (* in the table)."
    )


@grave
def lost_updates() -> str:
    return (
        "At read committed, a transaction that reads a row and then writes it overwrites changes made in "
        "between. Use SELECT ... FOR UPDATE (--begin immediate) to wait for them, or --isolation "
        "repeatable-read to refuse them."
    )


@grave
def given_up(
    *,
    count: int,
    where: str,
    share: float,
    how: Finding | None = None,
    most: str | None = None,
    ways: Sequence[Finding] | None = None,
) -> str:
    how_part = f", {how.text}" if how else ""
    most_part = f" (at {most})" if most else ""
    ways_part = f" Try {listing(texts(ways), 'or')}." if ways else ""
    return (
        f"{plural(count, 'operation')} failed with "
        f'"database is locked" at {where}{how_part}. That is '
        f"{'up to ' if most else ''}{percent(share)} of all{most_part}. The figures leave them "
        f"out.{ways_part}"
    )


def given_up_at_server(*, where: str, count: int, timeout: str) -> str:
    return (
        f"At {where}, {plural(count, 'operation')} gave up after {timeout}. The figures leave them out. "
        "Try a longer --busy-timeout or fewer processes."
    )


def begun_again(*, where: str, refused: int, locked: int) -> str:
    return (
        f"Transactions retried at {where}: {whole(refused)} after a serialization failure, "
        f"{whole(locked)} after a deadlock or an unavailable lock. An application must retry them itself."
    )


def stall(*, where: str, longest_ns: float) -> str:
    return (
        f"An operation of {where} took up to {duration(longest_ns)} with no other process to wait for. A "
        "checkpoint or the disk delayed it."
    )


def busy_snapshot(*, where: str, count: int, refused: int | None = None) -> str:
    refused_part = f", {whole(refused)} after an immediate BUSY" if refused is not None else ""
    return (
        f"Transactions retried at {where}: {whole(count)} after BUSY_SNAPSHOT{refused_part}. A deferred "
        "transaction that has read cannot wait for its turn to write: use BEGIN IMMEDIATE (--begin "
        "immediate)."
    )
