"""Presentation of exec: a row for each number of processes, exit codes, and messages of the commands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, islice
from operator import attrgetter
from typing import ClassVar, NamedTuple

from sqlstress.analysis.advice import figure_limits, partial_proofs
from sqlstress.analysis.causes import MESSAGES, SIGBUS, Facts, Rule, code_in, diagnose, rules_of
from sqlstress.analysis.failed import failure_time_of, failures_of
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, sightings
from sqlstress.analysis.scaling import throughput_findings
from sqlstress.analysis.wording import FailureTime, places
from sqlstress.experiments.exec import (
    ANSWER,
    CLOSED,
    DAMAGE_CODES,
    DELETED_LOCK,
    ENDED,
    ESCAPED,
    EXIT_CODE,
    LEFT_BEHIND,
    MOMENTS,
    ORIGINAL,
    STAYED,
    STDERR,
    TOO_LATE,
    UNUSED,
    sentences,
)
from sqlstress.experiments.exec.spec import EMPTY_COMMAND
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.report.results import Sighting
from sqlstress.show import case_table
from sqlstress.show.at_a_rate import rate_findings
from sqlstress.show.blocks import PERCENTILES, Block, Column, Paragraph, Value
from sqlstress.sqlite_codes import BUSY, BUSY_SNAPSHOT, LOCKED, name
from sqlstress.user_work import DELETED, LOST_LOCKS, NO_LOCKS
from sqlstress.user_work.failures_view import lock_losses, wal_growth_findings
from sqlstress.user_work.lock_holders_view import lock_findings, lock_holder_blocks
from sqlstress.user_work.show import (
    CHECKED,
    UserPresenter,
    checked_legend,
    count_by_kind,
)

OURS = "sqlstress, for the checks"
"""Label of sqlstress as a holder of the write lock, which the last connection to close takes briefly."""
MOST_KINDS = 5
"""Maximum number of kinds of messages that are shown."""
_FAILED = case_table.FAILED_SHARE.explained(
    ["failed: percentage of commands that did not exit with 0, or took too long"]
)
_RATES = {
    "commands/s": "commands per s: commands that exited with 0, all processes together",
    "operations/s": "operations per s: those of commands that ended well, all processes together",
}


def scaling(group: Group) -> Iterator[Finding]:
    """Yield findings on the effects of more processes or a higher rate; nothing for the empty command."""
    if group.case.spec.command:
        yield from throughput_findings(group)
        yield from rate_findings(group)


MOST_STARTING = 0.9
"""Share of time in starting and ending above which commands rarely use the database at the same time."""
MOMENTS_ENOUGH = 50
"""Minimum number of samples from which the share of starting and ending is computed."""


def starting(group: Group) -> Iterator[Finding]:
    """Yield a finding if commands mostly start and end, so that races may stay hidden."""
    several = any(run.case.concurrency > 1 and run.case.spec.command for run in group.runs)
    has_faults = any(run.verdict.status == "failed" or run.failed_too_many for run in group.runs)
    share = _share_of_starting(group)
    if several and not has_faults and share is not None and share > MOST_STARTING:
        yield Finding(sentences.starting_hides_races, share=share, inner=group.case.spec.inner > 1)


def _share_of_starting(group: Group) -> float | None:
    """Return the share of a command's time for starting and ending, from 0 to 1; None if unknown.

    Without enough samples, it is the time of the empty command divided by the time of the command.
    """
    moments = count_by_kind(group, MOMENTS, attrgetter("what"))
    if sum(moments.values()) >= MOMENTS_ENOUGH:
        return moments.get(CLOSED, 0) / sum(moments.values())
    p50 = {
        bool(run.case.spec.command): latency.p50_ns
        for run in group.runs
        if (latency := run.latency("command")) and latency.p50_ns
    }
    return p50[False] / p50[True] if len(p50) == 2 else None


def deleted_lock_files(group: Group) -> Iterator[Finding]:
    """Yield a finding for each deleted file whose lock commands held."""
    for file, count in count_by_kind(group, DELETED_LOCK, attrgetter("what")).items():
        yield Finding(sentences.deleted_lock_file, file=file, count=count)


def ended(group: Group) -> Iterator[Finding]:
    """Yield a finding on the exit codes of the commands, if some are not 0."""
    codes = count_by_kind(group, EXIT_CODE, attrgetter("what"))
    commands = None if group.case.spec.lines else sum(codes.values())
    if commands:
        codes.pop("0", None)
    if codes:
        (bus_error,) = rules_of(SIGBUS)
        sigbus = f"{bus_error.cause} {bus_error.cure}" if "SIGBUS" in codes else None
        count = sum(codes.values())
        yield Finding(sentences.exit_codes, ended=count, commands=commands, codes=codes, sigbus=sigbus)


def messages(group: Group) -> Iterator[Finding]:
    """Yield findings on messages on standard error and answers other than ok, the most frequent first."""
    for topic in (STDERR, ANSWER):
        counts = list(count_by_kind(group, topic, attrgetter("what")).items())
        if counts:
            examples = {sighting.what: sighting.example for sighting in sightings(group, topic)}
            shown = {examples[kind]: count for kind, count in counts[:MOST_KINDS]}
            more = max(0, len(counts) - MOST_KINDS) or None
            yield Finding(sentences.messages, answers=topic == ANSWER, messages=shown, more=more)


def _is_unused(group: Group) -> bool:
    """Return whether no command of any trial used its copy of the database."""
    trials = [trial for run in group.runs if run.case.spec.command for trial in run.trials]
    return bool(trials) and all(
        any(sighting.topic == UNUSED for sighting in trial.sightings) for trial in trials
    )


def databases(group: Group) -> Iterator[Finding]:
    """Yield findings on a copy that commands did not use, and on an original that changed."""
    database = group.case.spec.data.database
    if _is_unused(group):
        yield Finding(sentences.copy_unused, database=database, variable="{db}")
    for sighting in islice(sightings(group, ORIGINAL), 1):
        facts = {"database": database, "changes": sighting.what}
        if pid := sighting.traits.get("pid"):
            yield Finding(sentences.original_in_use, **facts, process=pid)
        else:
            yield Finding(sentences.original_changed, **facts, variable="{db}")


MAX_REFUSALS, MAX_CAUSES, MAX_LENGTH = 3, 3, 600
"""Maximum number of SQLite's errors that are explained, of the possible causes of each, and of the characters
of these causes."""
USUAL = "no-timeout", "read-before-write", "held-longer"
"""Names of the usual causes of SQLITE_BUSY, the likeliest first, where only a program's output is known."""
WAITED_NS = 1e9
"""Minimum median time of failed commands, in ns, at which they have probably waited for a busy timeout."""
_GENERAL = "out of memory", "access permission denied", "interrupted", "bus error", "sigbus"
"""Messages of SQLite that other libraries write, too."""
_SQLITE = re.compile("|".join(["SQLITE_", *(text for text, _ in MESSAGES if text not in _GENERAL)]), re.I)

_SHELL_ARGUMENT = re.compile(r"^Error: (stepping|in prepare), ")
_SHELL_SCRIPT = re.compile(r"^((Runtime|Parse) error|Error:) near line \d+: ")
"""Beginnings of the errors of SQLite's shell, for SQL on its command line and on its standard input."""
_SHELL = {
    _SHELL_ARGUMENT: (
        "SQLite's shell waits for no lock unless .timeout is set: use sqlite3 -cmd '.timeout 5000'."
    ),
    _SHELL_SCRIPT: (
        "SQLite's shell waits for no lock unless .timeout is set, and goes on after an error unless started "
        "with -bail: after a failed BEGIN, each statement commits by itself. Use sqlite3 -bail -cmd "
        "'.timeout 5000'."
    ),
}
"""Causes of SQLITE_BUSY in SQLite's shell, by the beginning of its error."""

_UNIQUE = re.compile(r"UNIQUE constraint failed: [\w.]+(, [\w.]+)*")


class PrintedError(NamedTuple):
    """Error of SQLite in the output of commands."""

    code: int
    statement: str
    """Kind of the statement, as in the rules of causes; empty if unknown."""
    alone: bool
    """Whether the command ran in a single process."""
    text: str
    """Name of the error, or a message that names the column whose key exists."""
    shell: str = ""
    """Cause in SQLite's shell, if the shell printed the error; else empty."""

    @property
    def is_lock(self) -> bool:
        """Whether a lock was not free."""
        return self.code & 0xFF in (BUSY, LOCKED)


def refused(group: Group) -> Iterator[Finding]:
    """Yield a finding for each of SQLite's errors in the output, with the causes that remain possible."""
    counts, sources = _printed_errors(group)
    time = _failure_time(group, sum(count for error, count in counts.items() if error.is_lock))
    has_waited = time is not None and time.median_ns >= WAITED_NS
    snapshots = [error for error in counts if error.code == BUSY_SNAPSHOT and not error.alone]
    busy = 0
    if snapshots and not has_waited:
        busy = sum(
            counts.pop(PrintedError(BUSY, statement, False, name(BUSY)), 0) for statement in ("", "write")
        )
    explained: dict[tuple[bool, str, tuple[str, ...]], list[PrintedError]] = {}
    for error, _ in counts.most_common():
        causes = _causes(error, group, time, has_waited=has_waited)
        is_own_lock = error.alone and error.code == BUSY
        explained.setdefault((is_own_lock, error.text, tuple(causes)), []).append(error)
    for (is_own_lock, text, possible), errors in islice(explained.items(), MAX_REFUSALS):
        error = errors[0]
        yield Finding(
            sentences.refused,
            error=text,
            count=sum(counts[error] for error in errors),
            causes=possible,
            source=next(filter(None, map(sources.get, errors)), None),
            time=time if error.is_lock else None,
            alone=is_own_lock,
            lines=group.case.spec.lines,
            soon=error.code == BUSY and time is not None and not has_waited and len(possible) > 1,
            busy=busy if snapshots[:1] == [error] else 0,
        )


def _failure_time(group: Group, printed: int) -> FailureTime | None:
    """Return the time until commands failed; None if it is unknown, or is not the time of a single statement.

    `printed` is the number of refused locks that the commands printed. A command that prints several, or ends
    well after some, has repeated its work: only a short time is a limit for each statement.
    """
    time = failure_time_of(failures_of(group.runs), None)
    if time is not None and time.median_ns >= WAITED_NS and printed > time.failures:
        return None
    return time


def _causes(error: PrintedError, group: Group, time: FailureTime | None, *, has_waited: bool) -> list[str]:
    """Return the possible causes of an error with their cures, the likeliest first.

    `time` is the time until commands failed, and `has_waited` whether they had waited for a busy timeout.
    """
    if error.code == DUPLICATE and (is_race := _is_race(group)) is not None:
        return [_RACE if is_race else _REPEATED_KEY]
    seen = {sighting.what for sighting in sightings(group, LOST_LOCKS)}
    if error.code & 0xFF in DAMAGE_CODES and seen & {NO_LOCKS, DELETED}:
        fault = "missing locks" if NO_LOCKS in seen else "deleted WAL"
        return [f"This probably follows from the {fault}."]
    facts = Facts()
    if error.is_lock:
        facts = Facts(
            waited=None if time is None else "the timeout" if has_waited else "at once",
            statement=error.statement or None,  # type: ignore[arg-type]
            transaction="none" if error.statement == "begin" else None,
            holder="this process" if error.alone else None,
        )
    # `diagnose` lists special causes before usual causes.
    from_usual_to_special = diagnose(error.code, facts).possible[::-1]
    possible = sorted(from_usual_to_special, key=_place_in_usual)
    texts = [f"{rule.cause} {rule.cure}" for rule in possible if not (error.shell and rule.name == USUAL[0])]
    if error.shell and error.code == BUSY and not has_waited:
        texts.insert(0, error.shell)
    lengths = accumulate(map(len, texts))
    return [text for text, length in zip(texts[:MAX_CAUSES], lengths, strict=False) if length <= MAX_LENGTH]


def _place_in_usual(rule: Rule) -> int:
    """Return the index of a cause among the usual ones; the number of these for all other causes."""
    return USUAL.index(rule.name) if rule.name in USUAL else len(USUAL)


(DUPLICATE,) = {code for message, code in MESSAGES if message.startswith("unique")}
"""Result code of a key that exists."""
(_DUPLICATE_RULE,) = rules_of(DUPLICATE)
_RACE = (
    "With one process it did not fail: two commands had read the same value, such as max(id), before either "
    f"inserted its row. {_DUPLICATE_RULE.cure}"
)
_REPEATED_KEY = "It also fails with one process, so it is no race: the command inserts a key that exists."


def _is_race(group: Group) -> bool | None:
    """Return whether keys were repeated only with several processes; None without a run with one process."""
    alone = [run for run in group.runs if run.case.concurrency == 1 and run.case.spec.command and run.valid]
    if not alone:
        return None
    seen = (sighting for run in alone for sighting in _run_sightings(run))
    return not any(error_code(sighting.example) == DUPLICATE for sighting in seen)


def _printed_errors(group: Group) -> tuple[Counter[PrintedError], dict[PrintedError, str]]:
    """Return the number of messages by error of SQLite, and a failed line of source code by error."""
    counts, sources = Counter[PrintedError](), dict[PrintedError, str]()
    for run in group.runs:
        for sighting in _run_sightings(run):
            if sighting.topic not in (STDERR, ANSWER) or run.case.server:
                continue
            if code := error_code(sighting.example):
                statement = sighting.traits.get("statement", "")
                column = _UNIQUE.search(sighting.example)
                text = f'"{column[0]}"' if column else name(code)
                shells = (cause for begin, cause in _SHELL.items() if begin.match(sighting.example))
                error = PrintedError(code, statement, run.case.concurrency == 1, text, next(shells, ""))
                counts[error] += sighting.count
                if statement:
                    sources.setdefault(error, sighting.traits["source"])
    return counts, sources


def error_code(message: str) -> int | None:
    """Return the SQLite result code in a program's message; None if no cause of an error is known."""
    code = code_in(message) if _SQLITE.search(message) else None
    return code if code and rules_of(code) else None


def cut_short(group: Group) -> Iterator[Finding]:
    """Yield findings on the commands and processes that sqlstress had to kill."""
    for kind, count in count_by_kind(group, ENDED, attrgetter("what")).items():
        cases = (run.case for run in group.runs if any(kind == seen.what for seen in _run_sightings(run)))
        if kind == TOO_LATE:
            limit_s = f"{group.case.spec.timeout_s:g}"
            lines = group.case.spec.lines
            yield Finding(sentences.timed_out, count=count, limit_s=limit_s, where=places(cases), lines=lines)
        elif kind == STAYED:
            yield Finding(sentences.program_stayed, count=count)
        elif kind in (LEFT_BEHIND, ESCAPED):
            yield Finding(sentences.left_behind, count=count, escaped=kind == ESCAPED, where=places(cases))


def _run_sightings(run: Run) -> Iterator[Sighting]:
    return (sighting for trial in run.trials for sighting in trial.sightings)


held_long = partial(lock_findings, ours=OURS)
"""Function that yields findings on programs that held the write lock for long."""


class ExecShown(UserPresenter):
    """Presenter of exec."""

    topics = (
        databases,
        lock_losses,
        deleted_lock_files,
        refused,
        starting,
        messages,
        ended,
        wal_growth_findings,
        held_long,
        cut_short,
        scaling,
        partial_proofs,
        figure_limits,
    )
    failed: ClassVar[Column[case_table.Row]] = _FAILED

    def failure_reason(self, run: Run) -> str:
        problem = "commands did not exit with 0"
        if run.case.spec.lines:
            problem = "lines were not answered with ok"
        return f"the {problem}, or took longer than --timeout"

    def work(self, case: Case) -> str:
        label: str = case.spec.called
        return label

    def activity(self, group: Group) -> str:
        text = super().activity(group)
        copy = f"a copy of {group.case.spec.data.database}"
        return text.replace(copy, f"{copy}, which no command used") if _is_unused(group) else text

    def columns(self, group: Group) -> Sequence[Column[case_table.Row]]:
        took = (
            "the lines took at most this long, from when one was written until it was answered"
            if group.case.spec.lines
            else "the commands took at most this long, from start to exit"
        )

        def latency(percentile: str, leaves: int | None = None) -> Column[case_table.Row]:
            latency_of, meaning = case_table.kind_latency("command"), f"{PERCENTILES} of {took}"
            return case_table.percentile_column(percentile, latency_of, meaning=meaning, leaves=leaves)

        rate = f"{group.unit}/s"
        return (
            *case_table.setting_columns(group),
            case_table.PROCESSES,
            replace(case_table.TIME, leaves=10),
            replace(case_table.TOTAL, name=rate, heading=(group.unit, "per s"), meaning=_RATES.get(rate, "")),
            latency("p50"),
            latency("p90", leaves=20),
            latency("p99"),
            _FAILED,
            case_table.FAIRNESS,
            replace(
                case_table.LONGEST_WAIT,
                heading=("longest", "ms"),
                meaning="longest: the slowest command, including one that failed or still ran at the end",
            ),
            CHECKED.explained([*case_table.spread_legend(group, "rate"), *checked_legend(group)]),
        )

    def closed_loop_table(self, group: Group) -> Iterator[Block]:
        return self.table(group)

    def more_blocks(self, group: Group) -> Iterator[Block]:
        yield from lock_holder_blocks(group, OURS)
        if any(not run.case.spec.command for run in group.runs):
            yield Paragraph(
                f"{EMPTY_COMMAND}: the same with a command that does nothing, which shows the cost of "
                "starting one."
            )

    def case_columns(self, runs: Sequence[Run]) -> Mapping[str, Callable[[Run], Value]]:
        return {
            **super().case_columns(runs),
            "command": lambda run: getattr(run.case.spec, "called", None),
        }
