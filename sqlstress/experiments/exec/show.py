"""Presentation of exec: a row per number of processes, exit codes, messages of the commands.

A finding is a sentence of the report with its facts. A group is the runs that the report shows in one table.
The empty command is measured next to the user's command, to show the cost of starting a process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import ClassVar

from sqlstress.analysis.advice import figure_limits, partial_proofs
from sqlstress.analysis.causes import rules_of
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, sightings
from sqlstress.analysis.scaling import throughput_findings
from sqlstress.analysis.sentences import touched_file
from sqlstress.analysis.wording import places
from sqlstress.experiments.exec import (
    ANSWER,
    CLOSED,
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
    TOUCHED,
    UNUSED,
    sentences,
)
from sqlstress.experiments.exec.refused import errors_after, refused, run_sightings
from sqlstress.experiments.exec.spec import EMPTY_COMMAND
from sqlstress.recording import MOVED
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.show import case_table
from sqlstress.show.at_a_rate import rate_findings
from sqlstress.show.blocks import PERCENTILES, Block, Column, Paragraph, Value
from sqlstress.sqlite_codes import SIGBUS
from sqlstress.user_work.call_findings import lock_losses, wal_growth_findings
from sqlstress.user_work.lock_holders_view import lock_findings, lock_holder_blocks
from sqlstress.user_work.show import (
    CHECKED,
    UserPresenter,
    checked_legend,
    count_by_kind,
)

OURS = "sqlstress, for the checks"
"""Label of sqlstress's own processes in the list of programs that held the write lock.

SQLite takes the write lock when sqlstress closes its last connection to the database.
"""
MAX_TOUCHES = 3
"""Maximum number of shown programs that copy or move the database."""
MOST_KINDS = 5
"""Maximum number of shown kinds of messages."""
_FAILED = case_table.FAILED_SHARE.explained(
    ["failed: percentage of commands that did not exit with 0, or took too long"]
)
_RATES = {
    "commands/s": "commands per s: commands that exited with 0, all processes together",
    "operations/s": "operations per s: those of commands that ended well, all processes together",
}


def scaling(group: Group) -> Iterator[Finding]:
    """Yield findings on the effects of more processes or a higher rate; none for the empty command."""
    if group.case.spec.command:
        yield from throughput_findings(group)
        yield from rate_findings(group)


MOST_STARTING = 0.9
"""Share of a command's time spent on starting and ending. Above it, commands rarely meet in the database."""
MOMENTS_ENOUGH = 50
"""Minimum number of samples to compute the share of time for starting and ending."""


def starting(group: Group) -> Iterator[Finding]:
    """Yield a finding if commands spend most of their time on starting and ending, which may hide races."""
    several = any(run.case.concurrency > 1 and run.case.spec.command for run in group.runs)
    has_faults = any(run.verdict.status == "failed" or run.failed_too_many for run in group.runs)
    share = _share_of_starting(group)
    if several and not has_faults and share is not None and share > MOST_STARTING:
        yield Finding(sentences.starting_hides_races, share=share, inner=group.case.spec.inner > 1)


def _share_of_starting(group: Group) -> float | None:
    """Return the share of a command's time spent on starting and ending, 0 to 1; None if unknown.

    This is the share of samples in which no process of the command has the database open (CLOSED). With
    fewer than MOMENTS_ENOUGH samples, it is the empty command's time divided by the command's time.
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


def touched(group: Group) -> Iterator[Finding]:
    """Yield a finding for each program that copied, moved, replaced or deleted the database in use."""
    kinds = dict.fromkeys(
        (seen.what, seen.traits["file"], seen.traits["program"], seen.traits["at"])
        for seen in sightings(group, TOUCHED)
    )
    for kind, file, program, at in islice(kinds, MAX_TOUCHES):
        yield Finding(
            touched_file,
            file=file,
            program=program or None,
            moved=kind == MOVED,
            at=at or None,
            errors=errors_after(group, kind),
        )


def deleted_lock_files(group: Group) -> Iterator[Finding]:
    """Yield a finding for each deleted file on which commands held a lock."""
    for file, count in count_by_kind(group, DELETED_LOCK, attrgetter("what")).items():
        yield Finding(sentences.deleted_lock_file, file=file, count=count)


def ended(group: Group) -> Iterator[Finding]:
    """Yield a finding on exit codes other than 0, if any."""
    codes = count_by_kind(group, EXIT_CODE, attrgetter("what"))
    commands = None if group.case.spec.lines else sum(codes.values())
    if commands:
        codes.pop("0", None)
    if codes:
        (bus_error,) = rules_of(SIGBUS)
        sigbus = f"{bus_error.cause} {bus_error.advice}" if "SIGBUS" in codes else None
        count = sum(codes.values())
        yield Finding(sentences.exit_codes, ended=count, commands=commands, codes=codes, sigbus=sigbus)


def messages(group: Group) -> Iterator[Finding]:
    """Yield findings on messages on standard error and answers other than ok."""
    for topic in (STDERR, ANSWER):
        counts = list(count_by_kind(group, topic, attrgetter("what")).items())
        if counts:
            examples = {sighting.what: sighting.example for sighting in sightings(group, topic)}
            shown = {examples[kind]: count for kind, count in counts[:MOST_KINDS]}
            more = max(0, len(counts) - MOST_KINDS) or None
            yield Finding(sentences.messages, answers=topic == ANSWER, messages=shown, more=more)


def _is_copy_unused(group: Group) -> bool:
    trials = [trial for run in group.runs if run.case.spec.command for trial in run.trials]
    return bool(trials) and all(
        any(sighting.topic == UNUSED for sighting in trial.sightings) for trial in trials
    )


def databases(group: Group) -> Iterator[Finding]:
    """Yield findings on an unused copy of the database, and on a changed original."""
    database = group.case.spec.data.database
    if _is_copy_unused(group):
        yield Finding(sentences.copy_unused, database=database, variable="{db}")
    for sighting in islice(sightings(group, ORIGINAL), 1):
        facts = {"database": database, "changes": sighting.what}
        if pid := sighting.traits.get("pid"):
            yield Finding(sentences.original_in_use, **facts, process=pid)
        else:
            yield Finding(sentences.original_changed, **facts, variable="{db}")


def cut_short(group: Group) -> Iterator[Finding]:
    """Yield findings on commands that sqlstress had to kill, and on processes that outlived commands."""
    for kind, count in count_by_kind(group, ENDED, attrgetter("what")).items():
        cases = (run.case for run in group.runs if any(kind == seen.what for seen in run_sightings(run)))
        if kind == TOO_LATE:
            limit_s = f"{group.case.spec.timeout_s:g}"
            lines = group.case.spec.lines
            yield Finding(sentences.timed_out, count=count, limit_s=limit_s, where=places(cases), lines=lines)
        elif kind == STAYED:
            yield Finding(sentences.program_stayed, count=count)
        elif kind in (LEFT_BEHIND, ESCAPED):
            yield Finding(sentences.left_behind, count=count, escaped=kind == ESCAPED, where=places(cases))


held_long = partial(lock_findings, ours=OURS)
"""Function that yields findings on programs that held the write lock for a long time."""


class ExecShown(UserPresenter):
    """Presenter of exec: it makes the tables and sentences of a group of cases."""

    topics = (
        databases,
        touched,
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
        return text.replace(copy, f"{copy}, which no command used") if _is_copy_unused(group) else text

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
