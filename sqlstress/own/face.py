"""The face of an experiment with the user's own work: what all of them say."""

from __future__ import annotations

from typing import Any

from sqlstress.errors import UsageError
from sqlstress.experiment import Experiment
from sqlstress.own.data import Data
from sqlstress.own.header import journal_mode_apart
from sqlstress.plan.ask import Ask, check_locking, is_exclusive
from sqlstress.plan.rate import AT_A_RATE, check_rate
from sqlstress.report.case import SETTINGS, Case, Settings, common

SWEPT = common("concurrency", "duration", "warmup", "ops", *AT_A_RATE, "repeat")
CONNECTED = common(*SETTINGS)
SEED = common("seed")
ITS_OWN = {"driver": "what is run here opens the database itself. --target says which one it is"}
"""Options that there are not where the user's own code opens the database, and why."""


def own(**said: Any) -> Experiment:
    """Return the face of an experiment of this kind; `said` are the fields that only it can say."""
    known: dict[str, Any] = {
        "unit": "transaction",
        "sweeps": True,
        "many_files": False,
        "windowed": True,
        "companions": {"checker": "sqlstress.own.checker:Checker"},
    }
    return Experiment(**{**known, **said})


def settings_of(asked: Ask[Any, Any], data: Data) -> Settings:
    """Return the settings: a copy keeps the journal mode of its original, unless another one is asked for."""
    if data.database and "journal-mode" not in asked.given:
        # Help loads the faces, and needs no SQLite.
        return asked.with_settings(journal_mode=journal_mode_apart(data.database))
    return asked.settings


def check_together(asked: Ask[Any, Any], data: Data) -> Case:
    """Return the case as far as all of this kind have it. Raises UsageError for contradictions."""
    case = asked.case
    for name in ("duration", "warmup"):
        if case.ops is not None and name in asked.given:
            raise UsageError(f"--ops takes the place of a window: leave out --ops or --{name}.")
    check_rate(asked)
    check_locking(asked)
    if data.checks and is_exclusive(asked.settings):
        raise UsageError("--check needs a process of its own, and locking_mode=exclusive lets one in.")
    if "check-timeout" in asked.given and not data.checks:
        raise UsageError("--check-timeout is of checks: add --check, or leave it out.")
    return case
