"""Sentences of exec reports: one function per sentence, whose parameters are its facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlstress.analysis.finding import aside, grave
from sqlstress.analysis.wording import FailureTime, counts, failure_time, percent, quoted
from sqlstress.statistics.units import digits, plural


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


def exit_codes(
    *, ended: int, codes: Mapping[str, int], commands: int | None = None, sigbus: str | None = None
) -> str:
    cause = f" SIGBUS: {sigbus}" if sigbus else ""
    listed = f"Exit codes, with their counts: {counts(codes)}.{cause}"
    if commands is None:
        return (
            f"The program ended {plural(ended, 'time')} before its input did, and was started again. {listed}"
        )
    return (
        f"{digits(ended)} of {plural(commands, 'command')}, including the warm-up, did not exit with 0. "
        f"{listed} They count only in the columns failed and longest."
    )


def messages(*, answers: bool, messages: Mapping[str, int], more: int | None = None) -> str:
    source = "Answers other than ok" if answers else "On standard error"
    rest = f"; the JSON report has {plural(more, 'more kind')}" if more is not None else ""
    return f"{source}, the first of each kind with its count: {quoted(messages)}{rest}."


def program_stayed(*, count: int) -> str:
    return (
        f"The program was ended {plural(count, 'time')}: it still ran 2 s after the end of its input or "
        "its output. Let it exit when its input ends."
    )


@grave
def starting_hides_races(*, share: float, inner: bool = False) -> str:
    advice = "Raise --inner."
    if not inner:
        advice = (
            "Let the program read lines and use --lines; if it cannot, repeat the work within a command "
            "and use --inner N."
        )
    return (
        f"Starting and ending takes {percent(share)} of a command's time, so commands rarely use the "
        f"database at the same time and races stay hidden. {advice}"
    )


@grave
def deleted_lock_file(*, file: str, count: int) -> str:
    return (
        f"{plural(count, 'process')} held the lock of {file} after that file was deleted or replaced. The "
        "next command locks a new file, so both work at the same time, and what the first writes to the old "
        "file is lost. Never delete, move or replace a file in use."
    )


def timed_out(*, count: int, where: str, limit_s: str, lines: bool = False) -> str:
    if lines:
        return (
            f"{digits(count)} lines at {where} took longer than {limit_s} s; the program was started again, "
            "and they count as failed. The program may not flush its output, or wait for a lock; raise "
            "--timeout."
        )
    return (
        f"{digits(count)} commands at {where} took longer than {limit_s} s; they were ended and count as "
        "failed. They may be waiting for input or a lock; raise --timeout."
    )


def left_behind(*, where: str, count: int, escaped: bool = False) -> str:
    processes = "commands left running"
    if escaped:
        processes = "no worker could reach any more (it was killed, or they left its group)"
    return (
        f"At {where}, sqlstress ended processes that {processes} ({digits(count)} in all). Make each command "
        "wait for the processes it starts."
    )


@grave
def refused(
    *,
    error: str,
    count: int,
    causes: Sequence[str],
    source: str | None = None,
    time: FailureTime | None = None,
    alone: bool = False,
    busy: int = 0,
    soon: bool = False,
    lines: bool = False,
) -> str:
    how = f", {failure_time(time)}" if time else ""
    own = " No other process was at work: the other connection is the program's own." if alone else ""
    also = f" Probably for the same reason {digits(busy)} failed with SQLITE_BUSY at once." if busy else ""
    explanation = causes[0]
    if len(causes) > 1:
        numbered = " ".join(f"({number}) {cause}" for number, cause in enumerate(causes, 1))
        explanation = f"Possible causes, the likeliest first: {numbered}"
    if soon:
        explanation += " If the program's busy timeout is shorter than that time, raise it."
    at = f" at {source}" if source else ""
    failures = f"The commands printed {error} {plural(count, 'time')}"
    if lines:
        failures = f"{plural(count, 'operation')} failed with {error}"
    return f"{failures}{how}{at}.{own}{also} {explanation}"
