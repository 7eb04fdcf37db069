"""Sentences of exec, a function each; its parameters are the facts of a finding."""

from __future__ import annotations

from collections.abc import Mapping

from sqlstress.analysis.finding import Finding, aside, grave
from sqlstress.analysis.wording import counts, percent, quoted
from sqlstress.statistics.units import plural, whole


@grave
def copy_unused(*, database: str, variable: str) -> str:
    return (
        f"No command opened the copy of {database}: these are not figures of your database. Write "
        f"{variable} in the command, or read the variable SQLSTRESS_DATABASE."
    )


@grave
def original_changed(*, database: str, changes: str, variable: str) -> str:
    return (
        f"{database} itself changed during the load ({changes}), by a program that was not seen. If it is "
        f"your command, write {variable} in it, or read the variable SQLSTRESS_DATABASE."
    )


@aside
def original_in_use(*, database: str, changes: str, process: str) -> str:
    return f"{database} itself changed during the load ({changes}), while process {process} had it open."


def exit_codes(*, failed: int, commands: int, codes: Mapping[str, int]) -> str:
    return (
        f"{whole(failed)} of {plural(commands, 'command')}, including the warm-up, did not exit with 0. "
        f"Exit codes, with their counts: {counts(codes)}. They count only in the columns failed and "
        "longest."
    )


def stderr(*, messages: Mapping[str, int], more: int | None = None) -> str:
    more_part = f"; the JSON report has {plural(more, 'more kind')}" if more is not None else ""
    return f"On standard error, the first of each kind with its count: {quoted(messages)}{more_part}."


def answers(*, messages: Mapping[str, int], more: int | None = None) -> str:
    more_part = f"; the JSON report has {plural(more, 'more kind')}" if more is not None else ""
    return f"Answers other than ok, the first of each kind with its count: {quoted(messages)}{more_part}."


def program_ended(*, count: int, codes: Mapping[str, int]) -> str:
    return (
        f"The program ended {plural(count, 'time')} before its input did, and was started again. Exit "
        f"codes, with their counts: {counts(codes)}."
    )


def program_stayed(*, count: int) -> str:
    return (
        f"The program was ended {plural(count, 'time')}: it still ran 2 s after the end of its input or "
        "its output. Let it exit when its input ends."
    )


@grave
def starting_hides_races(*, share: float, inner: bool = False) -> str:
    inner_text = (
        "Raise --inner."
        if inner
        else (
            "Let the program read lines and use --lines; if it cannot, repeat the work within a command "
            "and use --inner N."
        )
    )
    return (
        f"Starting and ending takes {percent(share)} of a command's time, so commands rarely use the "
        f"database at the same time and races stay hidden. {inner_text}"
    )


def timed_out(*, count: int, where: str, limit_s: str, flush: bool = False) -> str:
    flush_text = "the program was started again, and they" if flush else "they were ended and"
    flush_text_2 = (
        "The program may not flush its output, or wait for a lock"
        if flush
        else "They may be waiting for input or a lock"
    )
    return (
        f"{whole(count)} {'lines' if flush else 'commands'} at {where} took longer than {limit_s} s; "
        f"{flush_text} count as failed. {flush_text_2}; raise --timeout."
    )


def left_behind(*, where: str, count: int, escaped: bool = False) -> str:
    escaped_text = (
        "no worker could reach any more (it was killed, or they left its group)"
        if escaped
        else "commands left running"
    )
    return (
        f"At {where}, sqlstress ended processes that {escaped_text} ({whole(count)} in all). Make each "
        "command wait for the processes it starts."
    )


@grave
def locked_soon(*, count: int, how: Finding | None = None) -> str:
    how_part = f", {how.text}" if how else ""
    return (
        f"{plural(count, 'operation')} failed with "
        f'"database is locked"{how_part}. Without a busy timeout a program fails at once: set it first on '
        "every connection, before PRAGMA journal_mode (sqlite3: -cmd '.timeout 5000'). If the program "
        "has a longer timeout, it was not waited for: a transaction read before it wrote (use BEGIN "
        "IMMEDIATE), or a SELECT was still open. The output does not tell which."
    )


@grave
def locked_long(*, count: int, how: Finding | None = None) -> str:
    how_part = f", {how.text}" if how else ""
    return (
        f"{plural(count, 'operation')} failed with "
        f'"database is locked"{how_part}, probably after the whole busy timeout. Use --where to see which '
        "command holds the write lock, and for how long."
    )


@grave
def locked_alone(*, count: int, how: Finding | None = None) -> str:
    how_part = f", {how.text}" if how else ""
    return (
        f"{plural(count, 'operation')} failed with "
        f'"database is locked" at 1 process{how_part}. No other process was there to hold a lock: the '
        "program waits for another connection of its own, with an open transaction or an unread SELECT. "
        "Commit or close it; a longer timeout does not help."
    )


@grave
def locked_snapshot(*, count: int, how: Finding | None = None, busy: int | None = None) -> str:
    how_part = f", {how.text}" if how else ""
    busy_part = (
        (f" Probably for the same reason {whole(busy)} failed with SQLITE_BUSY, without waiting.")
        if busy is not None
        else ""
    )
    return (
        f"{plural(count, 'operation')} failed with SQLITE_BUSY_SNAPSHOT (517){how_part}: a transaction "
        f"read, another process committed, and then it wrote.{busy_part} No timeout helps. Use BEGIN "
        "IMMEDIATE and repeat from BEGIN; read every SELECT to its end."
    )


@grave
def locked_table(*, count: int, how: Finding | None = None) -> str:
    how_part = f", {how.text}" if how else ""
    return (
        f"{plural(count, 'operation')} failed with SQLITE_LOCKED{how_part}: another connection of the "
        "same program has the table. No timeout helps. Leave out cache=shared, and read every SELECT to "
        "its end."
    )


@grave
def locked_recovery(*, count: int, how: Finding | None = None) -> str:
    how_part = f", {how.text}" if how else ""
    return (
        f"{plural(count, 'operation')} failed with SQLITE_BUSY_RECOVERY (261){how_part}: another process "
        "was recovering the WAL. Set a busy timeout first on every connection."
    )


def checks_opened(*, low: int, high: int | None = None) -> str:
    high_part = f" ({whole(high)} in another trial)" if high is not None else ""
    return f"While commands ran, the checks opened and closed the database {plural(low, 'time')}{high_part}."
