"""The parent's half: tables that are built in, a look at each statement, the proofs of ledger and history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.analysis.wording import plural, verb
from sqlstress.engine.proofs import examined
from sqlstress.experiments.sql.anomalies import PREVENTED, TRIED, Anomaly, Transaction, Version, anomalies
from sqlstress.experiments.sql.builtin import setup
from sqlstress.experiments.sql.experiment import read_scripts
from sqlstress.experiments.sql.history import (
    READ,
    UNDONE,
    WRITE,
    Record,
    Recorded,
    has_history,
    is_one_transaction,
)
from sqlstress.experiments.sql.script import statements
from sqlstress.experiments.sql.worker import LEDGER
from sqlstress.report import Check
from sqlstress.report.case import ISOLATIONS
from sqlstress.report.results import Sighting, Tally
from sqlstress.system.sharing import shared_array
from sqlstress.target import serves
from sqlstress.user_work import ANOMALY, HISTORY
from sqlstress.user_work.database import explained
from sqlstress.user_work.parent import UserWork

if TYPE_CHECKING:
    from sqlstress.engine.protocols import Outcome
    from sqlstress.report import Trial
    from sqlstress.report.case import Case
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.place import Place


class SqlWork(UserWork):
    """One trial."""

    opening = "sqlstress.experiments.sql.worker:open_calls"

    def __init__(self, case: Case, place: Place, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place, salt, carry)
        self._acknowledged = shared_array("q", case.concurrency)
        self.shared = (*self.shared, self._acknowledged)
        self._scripts = scripts = read_scripts(case.spec, case.driver)
        self._statements = [one for script in scripts for one in statements(script.commands)]
        self._history: Examined | None = None
        self.redefines = any(one.statement.redefines for one in self._statements)

    def as_rehearsed(self) -> Case:
        # By Python's sqlite3, whichever driver is measured; our own rows are not looked at.
        spec = replace(self.case.spec, ledger=False, per_statement=False)
        return replace(self.case, driver="sqlite3", spec=spec) if not self.case.server else self.case

    def made(self) -> Iterator[str]:
        yield from setup(self.case.spec.builtin_setup, self.case.spec.scale)
        if self.case.spec.ledger:
            key = "PRIMARY KEY (worker, number)"
            # Where that can be, without a number of SQLite's for each row.
            options = "" if serves(self.case.driver) else " WITHOUT ROWID"
            yield f"CREATE TABLE {LEDGER} (worker INTEGER, number BIGINT, {key}){options}"

    def ready(self, pulse: Pulse) -> None:
        """See that the database understands each statement; not where scripts make the tables they use."""
        if self.redefines:
            return
        with self.place.reading(pulse) as reader:
            for one in self._statements:
                pulse()
                explained(reader, one.statement)

    def proofs(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        if self.case.spec.ledger:
            yield examined("ledger", lambda: self._check_ledger(outcomes, pulse))
        if has_history(self._scripts):
            recorded = {one.worker: one.findings.history for one in outcomes if one.findings}
            names = [Path(one.name).name for one in self._scripts]
            self._history = examine(recorded, names, self._isolation(outcomes), self.case.concurrency, pulse)
            yield self._history.check

    def _isolation(self, outcomes: Sequence[Outcome]) -> str:
        """Return the isolation level that all runs of scripts had; "": they are not one transaction each."""
        if not all(is_one_transaction(one) for one in self._scripts if has_history([one])):
            return ""
        if not serves(self.case.driver):
            return "serializable"
        if any("isolation" in one.statement.words for one in self._statements):
            return ISOLATIONS[0]  # which one a script asks for is not looked at: each is at least this
        levels = {
            one.findings.effective.get("transaction_isolation", "").replace(" ", "-")
            for one in outcomes
            if one.findings
        }
        return next((level for level in ISOLATIONS if level in levels), ISOLATIONS[0])

    def complete(self, trial: Trial, pulse: Pulse) -> Trial:
        trial = super().complete(trial, pulse)
        found = self._history.sightings if self._history else ()
        return replace(trial, sightings=(*trial.sightings, *found))

    def _check_ledger(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Check:
        with self.place.reading(pulse) as reader:
            rows = reader.rows(
                f"SELECT worker, count(*), min(number), max(number) FROM {LEDGER} GROUP BY worker"
            )
        found = {worker: (count, least, most) for worker, count, least, most in rows}
        return check_ledger(found, list(self._acknowledged), [one.died for one in outcomes])


def check_ledger(
    found: Mapping[int, tuple[int, int, int]], acknowledged: Sequence[int], dead: Sequence[bool]
) -> Check:
    """Hold the ledger against what each worker was told: numbers from 1 on, none left out, none too many.

    Who died may have committed one more. `found` is (how many rows, least number, largest) by worker; the
    others are by worker, from the first.
    """
    tally = Tally("ledger")
    for worker, (told, died) in enumerate(zip(acknowledged, dead, strict=True), 1):
        tally.checked += told
        count, least, most = found.get(worker, (0, 1, 0))
        if not told <= count <= told + died:
            tally.problem(
                f"{plural(told, 'commit')} of worker {worker} {verb(told, 'was', 'were')} acknowledged, "
                f"{count:,} {verb(count, 'is', 'are')} there"
            )
        elif (least, most) != (1, count) and count:
            tally.problem(f"the commits of worker {worker} are {least:,} to {most:,}, and only {count:,}")
    for worker in found.keys() - set(range(1, len(acknowledged) + 1)):
        tally.problem(f"there are commits of worker {worker}, whom nobody started")
    return tally.check()


# What the history of a trial proves: a check of its verdict, and a sighting of each kind of anomaly.
#
# An anomaly that the isolation level prevents is an error of the database. One that it allows is shown, and
# leaves the verdict alone.


MOST_STEPS = 6
"""Of a cycle that are kept."""


class Examined(NamedTuple):
    check: Check
    sightings: tuple[Sighting, ...]


def examine(
    recorded: Mapping[int, Record], scripts: Sequence[str], isolation: str, processes: int, pulse: Pulse
) -> Examined:
    """Hold what processes have recorded against an isolation level; "": nothing is prevented."""
    done = {
        f"{scripts[one.script]}, run {one.number} of process {process}": one
        for process, record in recorded.items()
        for one in record.runs
    }
    transactions = list(map(_transaction, done.values()))
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
            "rows": str(len({row for one in done.values() for _, row, _ in one.accesses})),
            "accesses": str(sum(len(one.accesses) for one in done.values())),
        },
    )
    seen = (_sighting(each, list(done), isolation) for each in found)
    check = tally.check(note)
    if found and check.status == "ok":
        # The database has done what it must; that does not make the data right.
        check = replace(check, status="skipped")
    return Examined(check, (tried, *seen))


def _transaction(one: Recorded) -> Transaction:
    """Return what a run did."""
    done: dict[int, list[Version]] = {READ: [], WRITE: [], UNDONE: []}
    for kind, row, version in one.accesses:
        done[kind].append((row, version))
    return Transaction(one.begin_ns, one.end_ns, done[READ], done[WRITE], done[UNDONE])


def _sighting(one: Anomaly, runs: Sequence[str], isolation: str) -> Sighting:
    """Return an anomaly with its first witnesses: who they are, and what each did with which row."""
    traits = {"isolation": isolation}
    names: dict[int, str] = {}
    for edge in one.edges[:MOST_STEPS]:
        for number in (edge.first, edge.second):
            if number not in names:
                names[number] = f"T{len(names) + 1}"
                traits[names[number]] = runs[number]
    for step, edge in enumerate(one.edges[:MOST_STEPS], 1):
        table, key = edge.row
        traits |= {
            f"step {step}": f"{edge.kind} {names[edge.first]} {names[edge.second]}",
            f"row {step}": f"{table} {key!r:.40}",
            f"versions {step}": f"{edge.version} {edge.after}",
        }
    return Sighting(ANOMALY, one.kind, one.times, traits=traits)
