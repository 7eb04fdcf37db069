"""A report of an application made by hand: connections of two kinds, exceptions, and a check that fails."""

from __future__ import annotations

from dataclasses import replace

from sqlstress.experiments.app import CONNECTION, DECLARED, EXCEPTION, HERE, UNSEEN
from sqlstress.experiments.app.spec import App, Weighted
from sqlstress.report import Check, Latency, Report, Run, Trial, Verdict
from sqlstress.report.case import KEPT, Case, Settings
from sqlstress.report.results import Sighting
from sqlstress.statistics.units import NS_PER_MS
from sqlstress.user_work import SUSPICION
from sqlstress.user_work.options import Data, Invariant
from tests.example_report import example_report

EXAMPLE = example_report()
CASE = Case(
    workload="app",
    duration_s=0.3,
    warmup_s=0.1,
    seed=7,
    max_failed=0.0,
    settings=Settings(journal_mode=KEPT, synchronous=None),
    spec=App(
        "bank.py",
        "0" * 64,
        (Weighted("transfer", 3), Weighted("balance")),
        Data(checks=(Invariant("no_money_appears", "bank.py:no_money_appears"),)),
    ),
)
TRAITS = {
    "database": HERE,
    "journal_mode": "wal",
    "synchronous": "full",
    "busy_timeout": "0",
    "opened_with": "5000",
    "foreign_keys": DECLARED,
    "python": "isolation_level=None",
    "writes_begin": "DEFERRED",
    "upgrades": "yes",
    "committed": "yes",
}
SIGHTINGS = (
    Sighting(CONNECTION, "sqlite3", 4, "", TRAITS),
    Sighting(
        CONNECTION, "sqlite3", 2, "", {**TRAITS, "busy_timeout": "7", "upgrades": "no", "committed": "no"}
    ),
    Sighting(CONNECTION, "sqlite3", 1, "", {**TRAITS, "database": "/srv/other.db", "synchronous": "off"}),
    Sighting(UNSEEN, "sqlite3", 12),
    Sighting(
        EXCEPTION,
        "SQLITE_BUSY_SNAPSHOT",
        71,
        "(sqlite3.OperationalError) database is locked",
        {"transaction": "transfer", "raised": "sqlalchemy.exc.OperationalError"},
    ),
    Sighting(
        SUSPICION,
        "read-outside",
        30,
        "",
        {
            "transaction": "transfer",
            "calls": "30",
            "table": "account",
            "first": "SELECT balance FROM account WHERE id = 5",
            "first_at": "bank.py:27",
            "then": "UPDATE account SET balance = 990 WHERE id = 5",
            "then_at": "bank.py:28",
        },
    ),
    Sighting(EXCEPTION, "KeyError", 2, "'name'", {"transaction": "balance", "raised": "KeyError"}),
)


def latency(count: int, ms: float) -> Latency:
    times = [ms * NS_PER_MS * factor for factor in (1, 2, 5)]
    return Latency(count, times[0], times[1], times[2], None, int(ms * 8 * NS_PER_MS))


def trial_of(concurrency: int) -> Trial:
    """Return a trial: by several processes with exceptions, and with a check that fails."""
    checks = [Check("quick_check", "ok", 1), Check("database that was used", "ok", 4)]
    checks.append(Check("checks under load", "ok", 9))
    after = Check("checks after the load", "ok", 1)
    if concurrency > 1:
        text = "no_money_appears: there are 9930, not 10000"
        after = Check("checks after the load", "failed", 1, 1, (text,))
    return replace(
        EXAMPLE.runs[0].trials[0],
        seconds=0.3,
        transactions=300 * concurrency,
        tps=1000.0 * concurrency,
        busy=0,
        busy_snapshot=71 if concurrency > 1 else 0,
        failed=73 if concurrency > 1 else 0,
        latency={"transfer": latency(225 * concurrency, 1.5), "balance": latency(75 * concurrency, 0.03)},
        effective={"journal_mode": "wal", "synchronous": "full", "busy_timeout": "0"},
        verdict=Verdict((*checks, after), seconds=0.1),
        sightings=SIGHTINGS if concurrency > 1 else SIGHTINGS[:1],
    )


def app_report() -> Report:
    """Return two runs, by one process and by four."""
    runs = tuple(Run(replace(CASE, concurrency=count), (trial_of(count),)) for count in (1, 4))
    return replace(EXAMPLE, command=("sqlstress", "app", "bank.py"), runs=runs, planned=len(runs))
