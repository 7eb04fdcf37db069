"""How commands are shown: a row for each number of processes, how they ended, and what they said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from sqlstress.analysis.advice import partial_proofs, trust
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.scaling import throughput
from sqlstress.analysis.wording import places
from sqlstress.experiments.exec.experiment import NOTHING
from sqlstress.experiments.exec.topics import ENDED, ESCAPED, EXIT_CODE, LEFT_BEHIND, STDERR, TOO_LATE
from sqlstress.report import Latency, Run
from sqlstress.report.case import Case
from sqlstress.report.results import Sighting
from sqlstress.show.at_a_rate import at_a_rate
from sqlstress.show.blocks import (
    Block,
    Column,
    Figure,
    Legend,
    Paragraph,
    Table,
    table_of,
)
from sqlstress.show.case_table import (
    FAILED_SHARE,
    FAIRNESS,
    LONGEST_WAIT,
    PROCESSES,
    TIME,
    Cell,
    Row,
    apart_columns,
    of_latency,
    percentiles,
    rows_of,
    spread_legend,
)
from sqlstress.show.case_table import TOTAL as TPS
from sqlstress.show.shown import Value
from sqlstress.user_work import UNDER
from sqlstress.user_work.show import CASE, CHECKED, OwnShown, checked_legend

LOCKED = "database is locked"
MOST_KINDS = 5
"""Kinds of messages that are told."""
_PERCENTILES = (("p50 ms", "p50_ns"), ("p90 ms", "p90_ns"), ("p99 ms", "p99_ns"))
_LEAVING = ("time s", "p90 ms", "longest wait ms", "fairness")
_MEANINGS = {
    "commands/s": "commands per s: those that exited with 0, all processes together",
    "p99 ms": "",
    "failed %": "failed: commands that exited with another code, or took too long, in per cent",
    "fairness": "fairness (Jain's index): 1 when all processes got an equal share",
    "longest wait ms": "longest: the slowest command, one that failed or still ran at the end included",
}


def _percentile(field: str) -> Cell:
    def figure(latency: Latency) -> float | None:
        value: float | None = getattr(latency, field)
        return value

    return of_latency("command", figure)


FIGURES: tuple[Figure[Row], ...] = (
    PROCESSES,
    TIME,
    replace(TPS, column=Column("commands/s", ("commands", "per s"))),
    *(Figure(Column(name, (name.split()[0], "ms")), _percentile(field)) for name, field in _PERCENTILES),
    FAILED_SHARE,
    FAIRNESS,
    replace(LONGEST_WAIT, column=Column("longest wait ms", ("longest", "ms"))),
    CHECKED,
)


def _legend(group: Group, table: Table) -> Iterator[str]:
    for name, text in _MEANINGS.items():
        if name == "p99 ms":
            yield from percentiles(
                table, "them were as fast or faster, from the start of the process to its end"
            )
        elif name in table.headers:
            yield text
    yield from spread_legend(group, "rate")
    yield from checked_legend(group)


def scaling(group: Group) -> Iterator[Finding]:
    """Yield what more processes, or a higher rate, did; nobody asks that of a command that does nothing."""
    if group.case.spec.command:
        yield from throughput(group)
        yield from at_a_rate(group)


def ended(group: Group) -> Iterator[Finding]:
    """Yield with which codes commands exited, if not all of them with 0."""
    counts = _counts(group, EXIT_CODE)
    others = {kind: count for kind, count in counts.items() if kind != "0"}
    if others:
        total, failed = sum(counts.values()), sum(others.values())
        yield Finding("exit-codes", failed=failed, commands=total, codes=others)


def stderr_output(group: Group) -> Iterator[Finding]:
    """Yield what they wrote on standard error, the commonest first."""
    counts = _counts(group, STDERR)
    if not counts:
        return
    examples = {one.what: one.example for one in _seen(group, STDERR)}
    messages = {examples[kind]: count for kind, count in [*counts.items()][:MOST_KINDS]}
    yield Finding("stderr", messages=messages, more=max(0, len(counts) - MOST_KINDS) or None)


def locked(group: Group) -> Iterator[Finding]:
    """Yield what helps commands that did not get a lock."""
    count = sum(one.count for one in _seen(group, STDERR) if LOCKED in one.example)
    if count:
        yield Finding("commands-locked", count=count)


def cut_short(group: Group) -> Iterator[Finding]:
    """Yield what had to be ended."""
    for kind, count in _counts(group, ENDED).items():
        where = places(run.case for run in group.runs if _has(run, kind))
        if kind == TOO_LATE:
            limit_s = f"{group.case.spec.timeout_s:g}"
            yield Finding("timed-out", count=count, limit_s=limit_s, where=where)
        elif kind in (LEFT_BEHIND, ESCAPED):
            yield Finding("left-behind", count=count, escaped=kind == ESCAPED, where=where)


def looked(group: Group) -> Iterator[Finding]:
    """Yield how often somebody else had the database open meanwhile: whoever runs the checks."""
    trials = (trial for run in group.runs for trial in run.trials)
    rounds = [check.checked for trial in trials for check in trial.verdict.checks if check.name == UNDER]
    if sum(rounds):
        low, high = min(rounds), max(rounds)
        yield Finding("checks-opened", low=low, high=high if high > low else None)


def _seen(group: Group, topic: str) -> Iterator[Sighting]:
    return (
        one for run in group.runs for trial in run.trials for one in trial.sightings if one.topic == topic
    )


def _counts(group: Group, topic: str) -> dict[str, int]:
    """Return how often each kind came in all trials, the commonest first."""
    found: dict[str, int] = {}
    for one in _seen(group, topic):
        found[one.what] = found.get(one.what, 0) + one.count
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _has(run: Run, kind: str) -> bool:
    return any(one.what == kind for trial in run.trials for one in trial.sightings)


class ExecShown(OwnShown):
    """How they are shown."""

    topics = (scaling, ended, stderr_output, locked, cut_short, looked, partial_proofs, trust)

    meanings: ClassVar[Mapping[str, str]] = {"failed %": _MEANINGS["failed %"]}

    def why_failed(self, run: Run) -> str:
        return "the commands exited with another code than 0, or took longer than --timeout"

    def work(self, case: Case) -> str:
        called: str = case.spec.called
        return called

    def closed_loop_table(self, group: Group) -> Iterator[Block]:
        table = table_of(rows_of(group), (*apart_columns(group), *FIGURES), _LEAVING)
        yield table
        yield Legend(table, partial(_legend, group))

    def more_blocks(self, group: Group) -> Iterator[Block]:
        if any(not run.case.spec.command for run in group.runs):
            yield Paragraph(f"{NOTHING}: the same with a command that does nothing, so what a start costs.")

    def case_columns(self, runs: Sequence[Run]) -> Mapping[str, Callable[[Run], Value]]:
        return {**CASE, "command": lambda run: getattr(run.case.spec, "called", None)}
