"""What the history of a trial proves: a check of its verdict, and a sighting of each kind of anomaly.

An anomaly that the isolation level prevents is an error of the database. One that it allows is shown, and
leaves the verdict alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sqlstress.experiments.sql.anomalies import PREVENTED, Anomaly, Transaction, Version, anomalies
from sqlstress.experiments.sql.history import ACCESS_WORDS, READ, RUN_WORDS, UNDONE, WRITE, Recorded
from sqlstress.report import Check
from sqlstress.report.results import Sighting, Tally
from sqlstress.user_work import ANOMALY, HISTORY

if TYPE_CHECKING:
    from sqlstress.system.interrupt import Pulse

TRIED = "tried"
"""The sighting of how much was looked at; the others are anomalies."""
MOST_STEPS = 6
"""Of a cycle that are kept."""


class Run(NamedTuple):
    """A run of a script, as it is called."""

    process: int
    number: int
    script: str

    def __str__(self) -> str:
        return f"{self.script}, run {self.number} of process {self.process}"


class Examined(NamedTuple):
    check: Check
    sightings: tuple[Sighting, ...]


def examine(
    recorded: Mapping[int, Recorded], scripts: Sequence[str], isolation: str, processes: int, pulse: Pulse
) -> Examined:
    """Hold what processes have recorded against an isolation level; "": nothing is prevented."""
    runs: list[Run] = []
    transactions: list[Transaction] = []
    for process, one in recorded.items():
        for run, transaction in _runs(process, one, scripts):
            runs.append(run)
            transactions.append(transaction)
    stopped = any(one.stopped for one in recorded.values())
    found = anomalies(transactions, not stopped and len(recorded) == processes, pulse)
    tally = Tally(HISTORY)
    tally.checked = sum(bool(one.reads or one.writes) for one in transactions)
    for anomaly in found:
        if anomaly.kind in PREVENTED.get(isolation, ()):
            tally.problem(anomaly.kind.replace("-", " "))
            tally.problems += anomaly.times - 1
    note = "a process recorded no more after its share of the room was full" if stopped else ""
    if len(recorded) < processes:
        note = "a process ended early, and what it recorded is missing"
    tried = Sighting(
        ANOMALY,
        TRIED,
        tally.checked,
        traits={
            "rows": str(len({row for one in recorded.values() for row in one.rows})),
            "accesses": str(sum(len(one.accesses) // ACCESS_WORDS for one in recorded.values())),
        },
    )
    seen = (_sighting(each, runs, isolation) for each in found)
    check = tally.check(note)
    if found and check.status == "ok":
        # The database has done what it must; that does not make the data right.
        check = replace(check, status="skipped")
    return Examined(check, (tried, *seen))


def _runs(process: int, one: Recorded, scripts: Sequence[str]) -> Iterator[tuple[Run, Transaction]]:
    """Yield the runs of a process, and what each did."""
    at = 0
    for place in range(0, len(one.runs), RUN_WORDS):
        number, begin_ns, end_ns, script, count = one.runs[place : place + RUN_WORDS]
        done: dict[int, list[Version]] = {READ: [], WRITE: [], UNDONE: []}
        for _ in range(count):
            kind, row, version = one.accesses[at : at + ACCESS_WORDS]
            done[kind].append((one.rows[row], version))
            at += ACCESS_WORDS
        yield (
            Run(process, number, scripts[script]),
            Transaction(begin_ns, end_ns, done[READ], done[WRITE], done[UNDONE]),
        )


def _sighting(one: Anomaly, runs: Sequence[Run], isolation: str) -> Sighting:
    """Return an anomaly with its first witnesses: who they are, and what each did with which row."""
    traits = {"isolation": isolation}
    names: dict[int, str] = {}
    for edge in one.edges[:MOST_STEPS]:
        for number in (edge.first, edge.second):
            if number not in names:
                names[number] = f"T{len(names) + 1}"
                traits[names[number]] = str(runs[number])
    for step, edge in enumerate(one.edges[:MOST_STEPS], 1):
        table, key = edge.row
        traits |= {
            f"step {step}": f"{edge.kind} {names[edge.first]} {names[edge.second]}",
            f"row {step}": f"{table} {key!r:.40}",
            f"versions {step}": f"{edge.version} {edge.after}",
        }
    return Sighting(ANOMALY, one.kind, one.times, traits=traits)
