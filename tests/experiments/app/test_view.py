"""What is shown of an application: golden files, and sentences by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.analysis.advice import advise
from sqlstress.experiments.app import BEGINNING, CONNECTION, THREADED, UNREAD
from sqlstress.report import Check, Report, Verdict
from sqlstress.report.results import Sighting
from sqlstress.show.text import report_text
from sqlstress.user_work import SUSPICION
from sqlstress.user_work.show import CODES
from tests.app_report import SIGHTINGS, TRAITS, app_report
from tests.example_report import assert_golden_texts


def with_sightings(*sightings: Sighting) -> Report:
    report = app_report()
    run = report.runs[0]
    return replace(report, runs=(replace(run, trials=(replace(run.trials[0], sightings=sightings),)),))


def said(**traits: str) -> dict[str, str]:
    """Return what is said of a connection that is like the golden one but for these traits, by code."""
    calm = {"busy_timeout": "5000", "foreign_keys": "on", "upgrades": "no"}
    report = with_sightings(Sighting("connection", "sqlite3", 1, "", {**TRAITS, **calm, **traits}))
    return {one.code: one.text for one in advise(report)}


UNWISE: dict[str, dict[str, str]] = {
    "no time-out": {"busy_timeout": "0", "opened_with": "0"},
    "a shorter time-out than it was opened with": {"busy_timeout": "100"},
    "reads before it writes": {"upgrades": "yes"},
    "a rollback journal": {"journal_mode": "delete"},
    "a journal in memory": {"journal_mode": "memory"},
    "no sync": {"synchronous": "off"},
    "foreign keys that are off": {"foreign_keys": "off, declared"},
    "another database": {"database": "/tmp/a.db"},
}


def test_what_is_unwise_is_said_and_nothing_else() -> None:
    calm = said()
    found = {}
    for name, traits in UNWISE.items():
        found[name] = [f"{code}: {text}" for code, text in said(**traits).items() if code not in calm]
        assert len(found[name]) == 1, name
    assert_golden_texts("unwise.txt", found)


def test_a_suspicion_is_the_cause_beside_wrong_data_and_else_a_suspicion() -> None:
    (suspicion,) = (one for one in SIGHTINGS if one.topic == SUSPICION)
    found = {one.code: one.text for one in advise(app_report())}
    assert found["suspicion"].startswith("Probable cause of a lost update: transfer reads account outside")
    assert "(bank.py:27), then UPDATE account" in found["suspicion"]
    again = replace(suspicion, traits={**suspicion.traits, "then_at": "bank.py:30"})
    (text,) = (one.text for one in advise(with_sightings(suspicion, again)) if one.code == "suspicion")
    assert text.startswith("Suspicion, although every check passed, of a lost update")


@pytest.mark.parametrize("kind", CODES)
def test_suspicion_of_each_kind_is_shown_with_its_statement(kind: str) -> None:
    traits = {"transaction": "transfer", "table": "account", "first": "SELECT 1", "then": "UPDATE account"}
    findings = advise(with_sightings(Sighting(SUSPICION, kind, 1, "", traits)))
    assert [finding for finding in findings if "SELECT 1" in finding.text]


def test_a_deferred_transaction_is_told_once_and_with_its_statements_where_they_are_known() -> None:
    traits = {"transaction": "transfer", "table": "account", "first": "SELECT 1", "then": "UPDATE account"}
    upgrade = Sighting("connection", "sqlite3", 1, "", {**TRAITS, "upgrades": "yes"})
    traced = Sighting(SUSPICION, "deferred-upgrade", 30, "", traits)
    (text,) = (
        one.text
        for one in advise(with_sightings(upgrade, traced, Sighting(SUSPICION, "unknown", 1)))
        if one.code == "deferred-upgrade"
    )
    assert "First SELECT 1, then UPDATE account. If another" in text


def test_what_a_saved_report_may_hold_is_shown_in_lines() -> None:
    odd = (
        Sighting("connection", "", -1, "\x1b[31m", {}),
        Sighting("connection", "", 1, "", {**TRAITS, "busy_timeout": "9" * 5000, "database": "x" * 9999}),
        *(Sighting("connection", "", 1, "", {**TRAITS, "journal_mode": str(n)}) for n in range(30)),
        Sighting("exception", "\n\n", 1, "%s{}", {}),
        Sighting("other", "kind", 1),
        *SIGHTINGS,
    )
    text = report_text(with_sightings(*odd))
    assert "29 more kinds of connections are in the JSON report." in " ".join(text.split())
    assert "\x1b" not in text and len(text) < 9000


def test_where_no_check_was_given_nothing_is_called_ok() -> None:
    """Updates may be lost while SQLite finds its files sound: that is no proof of the user's data."""
    report = app_report()
    sound = Verdict((Check("quick_check", "ok", 1),))
    runs = tuple(
        replace(run, trials=tuple(replace(trial, verdict=sound) for trial in run.trials))
        for run in report.runs
    )
    text = " ".join(report_text(replace(report, runs=runs)).split())
    assert " no check " in text
    assert "verified: no check = no check was given, so only SQLite's own consistency was verified" in text
    assert " ok = " not in text


def settings(*traits: dict[str, str]) -> str:
    """Return the lines on connections with these traits, in one line."""
    report = with_sightings(*(Sighting(CONNECTION, "sqlite3", 1, "", one) for one in traits))
    return " ".join(report_text(report).split())


def test_ways_to_begin_are_listed_once() -> None:
    ways = ("DEFERRED", "IMMEDIATE, DEFERRED", "DEFERRED, IMMEDIATE")
    text = settings(*({**TRAITS, "writes_begin": way} for way in ways))
    assert "writes begin DEFERRED and IMMEDIATE (3 connections)" in text


@pytest.mark.parametrize(
    ("traits", "words"),
    [
        ({}, ", no writes seen"),
        ({"locks": "IMMEDIATE"}, "transactions begin IMMEDIATE, no writes seen"),
        ({"watched": BEGINNING}, "no writes in the first statements of a connection"),
        ({"watched": THREADED}, "writes not examined (check_same_thread=False, several threads at work)"),
    ],
)
def test_a_connection_without_a_write_says_why(traits: dict[str, str], words: str) -> None:
    assert words in settings({**TRAITS, "writes_begin": "", **traits})


def test_connections_that_could_not_be_read_are_counted() -> None:
    text = " ".join(report_text(with_sightings(Sighting(UNREAD, "sqlite3", 2))).split())
    assert "The settings of 2 connections could not be read." in text
    assert "not examined" not in text
