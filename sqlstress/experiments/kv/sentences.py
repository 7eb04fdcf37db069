"""Sentences of key-value reports: one function per sentence, whose parameters are its facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlstress.analysis.wording import duration, listing, percent, processes, size
from sqlstress.statistics.units import digits, format_duration, plural


def processor_wait(*, where: str, share: float) -> str:
    return (
        f"At {where}, operations wait for a processor {percent(share)} of their time, more than for "
        "anything else. Use fewer processes, down to one per processor, to make operations shorter."
    )


def slowest_operations(
    *,
    where: str,
    count: int,
    fastest_ns: float,
    parts: Mapping[str, float],
    remedies: Sequence[str] | None = None,
) -> str:
    listed = listing([f"{percent(share)} {part}" for part, share in parts.items()])
    return (
        f"Slowest 1% of the operations that took a lock, at {where}: {plural(count, 'operation')} of "
        f"{duration(fastest_ns)} or longer. {' '.join([f'Their time: {listed}.', *(remedies or ())])}"
    )


def checkpoint_starvation(*, where: str, stuck: int, pinned: bool = False) -> str:
    remedy = "A reader keeps its snapshot open: find it and end its transaction sooner."
    if pinned:
        where_to_look = "In your application, look for a transaction that stays open."
        remedy = f"The pinned reader holds its snapshot. {where_to_look}"
    return (
        f"Checkpoints starved at {where}. Up to {digits(stuck)} in a row left frames in the WAL and made "
        f"no progress, with or without a busy result. {remedy}"
    )


def busy_checkpoints(*, busy: int, made: int, mode: str, where: str, longest_ns: float) -> str:
    return (
        f"{digits(busy)} of {plural(made, 'checkpoint')} ({mode}) at {where} returned busy, after up to "
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
    if snapshot:
        remedy = "The WAL cannot restart while a snapshot stays open: find the long reader."
    elif passive:
        remedy = (
            "After a PASSIVE checkpoint the WAL restarts only if nobody has written meanwhile: use RESTART."
        )
    else:
        remedy = "Checkpoint more often (--checkpoint-interval)." if seldom else ""
    if stays:
        remedy += " Only a TRUNCATE checkpoint or PRAGMA journal_size_limit shrinks the file."
    return (
        f"A WAL grew to {size(largest)} at {where}. That is over {digits(times)} times the {digits(frames)} "
        f"pages at which SQLite checkpoints by default. {remedy}"
    )


def usual_timeout(
    *,
    where: str,
    usual_s: int,
    window_s: int,
    longest_ns: float,
    count: int | None = None,
    again: bool = False,
) -> str:
    usual = f"{digits(usual_s)} s"
    if count is None:
        return (
            f"An operation at {where} waited for the whole window, up to {duration(longest_ns)}. Use "
            f"--duration {digits(window_s)}s to see whether it would wait longer than the usual busy timeout "
            f"of {usual}."
        )
    return (
        f"{plural(count, 'operation')} at {where} waited longer than {usual}. With the usual busy timeout of "
        f"{usual} an application {'could' if again else 'would'} have seen "
        f'"database is locked": try --busy-timeout {digits(usual_s)}s.'
    )


def longer_window(
    *,
    usual_s: int,
    where: str,
    window_s: float,
    starved: int,
    table_ns: float,
    extra_ns: float,
    no_sign: bool,
    enough_s: int,
) -> str:
    usual = f"{digits(usual_s)} s, the usual busy timeout"
    extra = f"an extra window of {format_duration(window_s)}"
    if starved:
        return (
            f'An operation may wait longer than {usual}, and fail with "database is locked". At {where}, '
            f"{processes(starved)} waited for the whole of {extra}, which is not in the table. Use "
            f"--duration {digits(enough_s)}s to count such waits."
        )
    if no_sign:
        return (
            f"No sign of waits over {usual}: at {where}, the longest wait was {duration(table_ns)}, and "
            f"{duration(extra_ns)} in {extra}."
        )
    return (
        f"Cannot tell whether an operation would wait longer than {usual}. At {where}, the longest wait was "
        f"{duration(table_ns)} in the table's windows and {duration(extra_ns)} in {extra}. Use --duration "
        f"{digits(enough_s)}s."
    )


def p99_uneven(*, where: str, kind: str, all_ns: float, worst_ns: float) -> str:
    return (
        f"At {where}, 99% of all {kind}s took at most {duration(all_ns)}. Shares were uneven: in the "
        f"slowest process, p99 was {duration(worst_ns)} (* in the table)."
    )


def given_up_at_server(*, where: str, count: int, timeout: str) -> str:
    return (
        f"At {where}, {plural(count, 'operation')} gave up after {timeout}. The figures leave them out. "
        "Try a longer --busy-timeout or fewer processes."
    )


def stall(*, where: str, longest_ns: float) -> str:
    return (
        f"An operation of {where} took up to {duration(longest_ns)} with no other process to wait for. A "
        "checkpoint or the disk delayed it."
    )
