"""Presentation of an application: golden files, and sentences on made-up facts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.analysis.advice import advise
from sqlstress.experiments.app import BEGINNING, CONNECTION, THREADED, UNREAD
from sqlstress.races.suspicions import CASCADE, IF_FAILED, KEPT_ID, MIXED, NEEDLESS_LOCK, OLD_VALUE, STALE
from sqlstress.recording import CALL_COST
from sqlstress.report import Check, Report, Verdict
from sqlstress.report.results import Sighting
from sqlstress.show.shown import presenter_of
from sqlstress.show.text import report_text
from sqlstress.user_work import AFTER, ALONE, BETWEEN, HALF, IN_TURN, INTERLEAVING, ORDERS, SUSPICION, UNDER
from sqlstress.user_work.suspicions_view import CODES
from tests.app_report import SIGHTINGS, TRAITS, app_report
from tests.example_report import assert_golden_texts


def with_sightings(*sightings: Sighting) -> Report:
    report = app_report()
    run = report.runs[0]
    return replace(report, runs=(replace(run, trials=(replace(run.trials[0], sightings=sightings),)),))


def texts_of_connection(**traits: str) -> dict[str, str]:
    """Return the texts by code for a connection that has these traits, and otherwise harmless ones."""
    calm = {"busy_timeout": "5000", "foreign_keys": "on", "upgrades": "no"}
    report = with_sightings(Sighting("connection", "sqlite3", 1, "", {**TRAITS, **calm, **traits}))
    return {finding.code: finding.text for finding in advise(report)}


UNWISE: dict[str, dict[str, str]] = {
    "no time-out": {"busy_timeout": "0", "opened_with": "0"},
    "a shorter time-out than it was opened with": {"busy_timeout": "100"},
    "reads before it writes": {"upgrades": "yes"},
    "a rollback journal": {"journal_mode": "delete"},
    "a journal in memory": {"journal_mode": "memory"},
    "no sync": {"synchronous": "off"},
    "foreign keys that are off": {"foreign_keys": "off, broken"},
    "another database": {"database": "/tmp/a.db"},
}


@pytest.mark.parametrize("is_busy", [False, True])
def test_chosen_rollback_journal_is_named_if_it_does_harm(*, is_busy: bool) -> None:
    calm = Sighting("connection", "sqlite3", 1, "", {**TRAITS, "journal_mode": "truncate"})
    refused = failure(5, statement="write", waited_ms="5000", longest_ms="5000")
    codes = {finding.code for finding in advise(with_sightings(calm, *([refused] * is_busy)))}
    assert ("journal-mode" in codes) == is_busy


def test_share_of_a_rare_transaction_is_not_rounded_to_all() -> None:
    report = app_report()
    run = report.runs[0]
    first, second, *_ = run.case.spec.transactions
    weighted = (replace(first, weight=199), replace(second, weight=1))
    case = replace(run.case, spec=replace(run.case.spec, transactions=weighted))
    text = " ".join(report_text(replace(report, runs=(replace(run, case=case),))).split())
    assert f"{first.name} 99.5%, {second.name} 0.5%" in text


def test_each_unwise_setting_has_one_finding() -> None:
    calm = texts_of_connection()
    found = {}
    for name, traits in UNWISE.items():
        found[name] = [
            f"{code}: {text}" for code, text in texts_of_connection(**traits).items() if code not in calm
        ]
        assert len(found[name]) == 1, name
    assert_golden_texts("unwise.txt", found)


def test_suspicion_is_a_probable_cause_only_with_wrong_data() -> None:
    (suspicion,) = (entry for entry in SIGHTINGS if entry.topic == SUSPICION)
    found = {entry.code: entry.text for entry in advise(app_report())}
    assert found["suspicion"].startswith("Probable cause of a lost update: transfer reads account outside")
    assert "(bank.py:27), then UPDATE account" in found["suspicion"]
    again = replace(suspicion, traits={**suspicion.traits, "then_at": "bank.py:30"})
    (text,) = (entry.text for entry in advise(with_sightings(suspicion, again)) if entry.code == "suspicion")
    assert text.startswith("Suspicion, although every check passed, of a lost update")


def shows_suspicion(kind: str, *failed: str) -> bool:
    """Return whether a report whose checks `failed` shows a suspicion; the other checks passed."""
    traits = {"transaction": "transfer", "table": "account", "first": "SELECT 1", "then": "UPDATE account"}
    report = with_sightings(Sighting(SUSPICION, kind, 1, "", traits))
    (run,), checks = report.runs, []
    for name in (UNDER, AFTER):
        checks.append(Check(name, "failed" if name in failed else "ok", 1, int(name in failed)))
    trial = replace(run.trials[0], verdict=Verdict(tuple(checks)))
    report = replace(report, runs=(replace(run, trials=(trial,)),))
    return any("SELECT 1" in finding.text for finding in advise(report))


@pytest.mark.parametrize("kind", CODES)
def test_suspicion_of_each_kind_is_shown_with_its_statement(kind: str) -> None:
    assert shows_suspicion(kind, UNDER)
    assert shows_suspicion(kind, AFTER)
    assert shows_suspicion(kind) == (kind not in IF_FAILED)


def texts_with_step(kind: str, at: str, suspected: str = STALE) -> dict[str, str]:
    """Return the texts of a report with a suspicion in `transfer`, and a step at a line of that function."""
    traits = {"transaction": "transfer", "table": "account", "first": "SELECT 1", "then": "UPDATE account"}
    lines = {"first_at": "bank.py:5", "then_at": "bank.py:7"}
    suspicion = Sighting(SUSPICION, suspected, 1, "", {**traits, **lines})
    step_traits = {**traits, "first_at": at, "then_at": at, "check": "total", "others": "deposit"}
    report = with_sightings(suspicion, Sighting(INTERLEAVING, kind, 1, "", step_traits))
    return {finding.code: finding.text for finding in advise(report)}


@pytest.mark.parametrize(
    ("kind", "at", "suspected", "is_cause"),
    [
        (BETWEEN, "bank.py:5", STALE, True),
        (BETWEEN, "bank.py:7", STALE, True),
        (BETWEEN, "bank.py:9", STALE, False),
        (BETWEEN, "bank.py:5", NEEDLESS_LOCK, False),
        (HALF, "bank.py:5", STALE, False),
        (ALONE, "bank.py:5", STALE, False),
        (BETWEEN, "bank.py:6", STALE, True),
        (ALONE, "bank.py:9", CASCADE, True),
        (ALONE, "bank.py:9", MIXED, True),
        (IN_TURN, "bank.py:9", OLD_VALUE, True),
        (ALONE, "bank.py:9", OLD_VALUE, False),
        (IN_TURN, "bank.py:9", KEPT_ID, True),
        (BETWEEN, "bank.py:5", KEPT_ID, False),
    ],
)
def test_suspicion_is_the_cause_if_the_step_is_between_its_statements(
    kind: str, at: str, suspected: str, *, is_cause: bool
) -> None:
    texts = texts_with_step(kind, at, suspected)
    assert texts["suspicion"].startswith("Cause of ") == is_cause
    assert ("breaking-step" in texts) != is_cause


def test_suspicion_that_no_order_of_calls_confirms_is_a_remark() -> None:
    (suspicion,) = (entry for entry in SIGHTINGS if entry.topic == SUSPICION)
    tested = replace(suspicion, traits={**suspicion.traits, ORDERS: "24"})
    texts = {entry.code: entry.text for entry in advise(with_sightings(tested))}
    assert "suspicion" not in texts and "held in 24 orders" in texts["unbroken-suspicion"]


@pytest.mark.parametrize(("facts", "is_doubtful"), [({}, True), ({ORDERS: "24"}, False)])
def test_strict_ignores_suspicions_that_no_order_of_calls_confirms(
    facts: dict[str, str], *, is_doubtful: bool
) -> None:
    (run,) = with_sightings(Sighting(SUSPICION, STALE, 1, "", facts)).runs
    strict = replace(run, case=replace(run.case, spec=replace(run.case.spec, strict=True)))
    assert presenter_of(run.case).is_doubtful(strict) == is_doubtful


def test_uneven_shares_in_the_longer_window_alone_may_be_chance() -> None:
    run = app_report().runs[0]
    case = replace(run.case, concurrency=2)
    unfair = replace(run.trials[0], fairness=0.5, seconds=2.0)
    for trial, is_named in ((replace(unfair, seconds=0.3), False), (unfair, True)):
        report = replace(app_report(), runs=(replace(run, case=case, trials=(trial,), longer=unfair),))
        assert any(finding.code == "starvation" for finding in advise(report)) == is_named


@pytest.mark.parametrize(
    ("work", "share", "is_named"), [("SCAN t", 0.5, True), ("SCAN t", 0.4, False), ("much work", 0.5, False)]
)
def test_short_scans_are_named_only_if_they_fill_the_time_of_the_longer_window(
    work: str, share: float, *, is_named: bool
) -> None:
    traits = {"at": "a.py:1", "began_at": "", "seconds": "0.012", "outside": "0", "work": work, "calls": "9"}
    scan = Sighting("long hold", "UPDATE t SET n = ?", 6, "", {**traits, "share": f"{share}"})
    report = with_sightings(scan)
    (run,) = report.runs
    trials = tuple(replace(trial, sightings=()) for trial in run.trials)
    run = replace(run, case=replace(run.case, concurrency=2), trials=trials, longer=run.trials[0])
    found = advise(replace(report, runs=(run,)))
    assert any(finding.code == "long-hold" for finding in found) == is_named


@pytest.mark.parametrize(
    ("sql", "cure"),
    [
        ("UPDATE t SET n = ? WHERE name LIKE ?", "COLLATE NOCASE"),
        ("UPDATE t SET n = ? WHERE lower(name) = ?", "an index on the same expression"),
        ("UPDATE t SET n = lower(?) WHERE name = lower(?)", "Create an index for its condition"),
    ],
)
def test_cure_of_a_scan_serves_its_condition(sql: str, cure: str) -> None:
    traits = {"at": "a.py:1", "began_at": "", "seconds": "0.3", "outside": "0", "share": "0.5"}
    scan = Sighting("long hold", sql, 6, "", {**traits, "work": "SCAN t"})
    (text,) = (found.text for found in advise(with_sightings(scan)) if found.code == "long-hold")
    assert cure in text


@pytest.mark.parametrize(
    ("calls", "share", "is_named"), [(600, 0.1, True), (601, 0.1, False), (601, 0.3, True), (10, 0.04, False)]
)
def test_rare_long_holds_are_named_only_if_they_take_much_time(
    calls: int, share: float, is_named: bool
) -> None:
    traits = {"at": "a.py:1", "began_at": "", "seconds": "0.2", "outside": "1", "share": f"{share}"}
    hold = Sighting("long hold", "BEGIN IMMEDIATE", 6, "", {**traits, "calls": f"{calls}"})
    named = [finding for finding in advise(with_sightings(hold)) if finding.code == "long-hold"]
    assert bool(named) == is_named


def failure(code: int, **traits: str) -> Sighting:
    """Return the observation of a statement that failed nine times."""
    names = ("journal", "statement", "transaction", "open_cursor", "shared_cache", "holder")
    traits = {"at": "a.py:1", "waited_ms": "0", "longest_ms": "0", "timeout_ms": "5000", **traits}
    return Sighting(
        "failed statement", "INSERT", 9, "", {**dict.fromkeys(names, ""), "code": f"{code}", **traits}
    )


@pytest.mark.parametrize("repeated", [0, 9])
def test_advice_to_repeat_is_left_out_if_all_calls_repeat(repeated: int) -> None:
    facts = {"statement": "write", "transaction": "read"} | dict.fromkeys(
        ("shared_cache", "open_cursor"), "no"
    )
    refused = failure(5, **facts, repeated_calls=f"{repeated}")
    (text,) = (f.text for f in advise(with_sightings(refused)) if f.code == "failed-statement")
    assert "Begin with BEGIN IMMEDIATE." in text
    assert ("Repeat the transaction from BEGIN" in text) == (not repeated)


def lock_order(call: str, *files: str, sql: str = "INSERT", at: str = "a.py:1") -> Sighting:
    """Return the observation of a call that waited for the second of two files."""
    traits = {"first": files[0], "then": files[1], "first_at": "a.py:3", "then_at": "a.py:4"}
    return Sighting("lock order", call, 1, "", {**traits, "statement": sql, "at": at})


@pytest.mark.parametrize(
    ("other", "is_named"),
    [
        (lock_order("give_back", "b.db", "a.db"), True),
        (lock_order("give_back", "b.db", "a.db", sql="", at=""), True),
        (lock_order("give_back", "a.db", "b.db"), False),
        (lock_order("give_back", "b.db", "c.db"), False),
    ],
    ids=["failed", "waited", "same_order", "other_file"],
)
def test_calls_that_lock_files_in_opposite_orders_are_named(other: Sighting, *, is_named: bool) -> None:
    refused = failure(5, waited_ms="5000", longest_ms="5000", statement="begin")
    elsewhere = replace(refused, what="DELETE", traits={**refused.traits, "at": "a.py:9"})
    order = lock_order("order", "a.db", "b.db")
    found = [
        finding.text
        for finding in advise(with_sightings(refused, elsewhere, order, other))
        if finding.code == "failed-statement"
    ]
    both = (
        "give_back locks b.db (a.py:3), then a.db (a.py:4), and order locks a.db (a.py:3), then b.db "
        "(a.py:4): each waits for the other until the timeout. Lock files in the same order everywhere"
    )
    assert any(both in text for text in found) == is_named
    assert ("the holder itself waited for another file" in found[-1]) == is_named


@pytest.mark.parametrize(("committed", "after"), [("", ""), ("", "COMMIT"), ("a.py:7", "")])
def test_change_saves_more_than_time_if_calls_do_a_part_twice(committed: str, after: str) -> None:
    waits = {"waited_ms": "5000", "longest_ms": "5000", "statement": "commit", "journal": "delete"}
    traits = {"at": "a.py:1", "most": "1", "committed": committed, "after": after}
    twice = Sighting("repeated transactions", "pay", 3, "", traits)
    findings = advise(with_sightings(failure(5, **waits, repeated_calls="9"), twice))
    (text,) = (finding.text for finding in findings if finding.code == "failed-statement")
    assert ("only saves time" in text) == (not (committed or after))


WAITED = {"statement": "write", **dict.fromkeys(("waited_ms", "longest_ms", "timeout_ms"), "20")}


def with_wrong_data(*sightings: Sighting) -> Report:
    """Return a report with sightings in whose trial a check of the user failed."""
    report = with_sightings(*sightings)
    wrong = Check(AFTER, "failed", 1, 1, ("a row is wrong",))
    run = replace(report.runs[0], trials=(replace(report.runs[0].trials[0], verdict=Verdict((wrong,))),))
    return replace(report, runs=(run,))


def test_holder_may_be_a_transaction_that_a_call_left_open() -> None:
    traits = {"began": "implicit BEGIN", "at": "a.py:3", "failed_commit": "", "state": "written"}
    refused = failure(5, statement="write", waited_ms="5000", longest_ms="5000")
    report = with_sightings(refused, Sighting("left open", "book", 9, "", traits))
    (text,) = (f.text for f in advise(report) if f.code == "failed-statement")
    assert "The holder is the transaction that book left open" in text


@pytest.mark.parametrize(("mode", "count"), [("PASSIVE", 0), ("TRUNCATE", 1)])
def test_busy_checkpoint_is_a_finding_unless_passive(mode: str, count: int) -> None:
    busy = replace(failure(5, statement="checkpoint", waited_ms="0"), what=f"PRAGMA wal_checkpoint({mode})")
    found = [f for f in advise(with_sightings(busy)) if f.code == "failed-statement"]
    assert len(found) == count


@pytest.mark.parametrize(("repeated", "is_swallowed"), [(1, True), (5, False)])
def test_swallowed_error_comes_before_its_cause(repeated: int, is_swallowed: bool) -> None:
    swallowed = failure(5, **WAITED, given_up="4", given_up_by="count", repeated_calls=f"{repeated}")
    other = replace(failure(5, statement="journal_mode", at="a.py:2"), count=20)
    texts = [f.text for f in advise(with_wrong_data(swallowed, other)) if f.code == "failed-statement"]
    words = "4 calls of count caught the error and committed nothing after it: this work is lost. Let the"
    assert [words in text for text in texts] == [is_swallowed, False]
    (text,) = (text for text in texts if "a.py:1" in text)
    assert ("The following only makes the error rarer. The busy timeout was" in text) == is_swallowed


@pytest.mark.parametrize("is_split", [False, True])
def test_caught_constraint_is_not_named_with_a_split_transaction(is_split: bool) -> None:
    split = Sighting("split transaction", "a.py:2", 3, "", {"at": "a.py:1", "way": "release"})
    report = with_wrong_data(failure(1555, statement="write"), *[split] * is_split)
    codes = [finding.code for finding in advise(report)]
    assert ("failed-statement" in codes) == (not is_split)


@pytest.mark.parametrize("repeated", [0, 9])
def test_short_timeout_is_no_fault_if_all_refused_calls_are_repeated(repeated: int) -> None:
    waits = {"waited_ms": "100", "longest_ms": "100", "timeout_ms": "100"}
    refused = failure(5, **waits, repeated_calls=f"{repeated}")
    short = Sighting(CONNECTION, "sqlite3", 1, "", {**TRAITS, "busy_timeout": "100", "opened_with": "100"})
    codes = [finding.code for finding in advise(with_sightings(refused, short))]
    assert ("busy-timeout" in codes) == (not repeated)


def test_deferred_transaction_is_reported_once_with_its_statements() -> None:
    traits = {"transaction": "transfer", "table": "account", "first": "SELECT 1", "then": "UPDATE account"}
    upgrade = Sighting("connection", "sqlite3", 1, "", {**TRAITS, "upgrades": "yes"})
    traced = Sighting(SUSPICION, "deferred-upgrade", 30, "", traits)
    (text,) = (
        finding.text
        for finding in advise(with_sightings(upgrade, traced, Sighting(SUSPICION, "unknown", 1)))
        if finding.code == "deferred-upgrade"
    )
    assert "First SELECT 1, then UPDATE account. If another" in text


def test_odd_traits_of_a_saved_report_are_shown_in_short_lines() -> None:
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


def test_report_without_checks_is_not_called_ok() -> None:
    """Updates may be lost although SQLite finds its files intact, so this does not prove the user's data."""
    report = app_report()
    sound = Verdict((Check("quick_check", "ok", 1),))
    runs = tuple(
        replace(run, trials=tuple(replace(trial, verdict=sound) for trial in run.trials))
        for run in report.runs
    )
    text = " ".join(report_text(replace(report, runs=runs)).split())
    assert " no check " in text
    assert (
        "data (verified): no check = no check was given, so only SQLite's own consistency was verified"
        in text
    )
    assert " ok = " not in text


def settings(*traits: dict[str, str]) -> str:
    """Return the lines on connections with these traits, in one line."""
    report = with_sightings(*(Sighting(CONNECTION, "sqlite3", 1, "", trait) for trait in traits))
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
def test_connection_without_a_write_has_the_reason(traits: dict[str, str], words: str) -> None:
    assert words in settings({**TRAITS, "writes_begin": "", **traits})


def test_connections_that_could_not_be_read_are_counted() -> None:
    text = " ".join(report_text(with_sightings(Sighting(UNREAD, "sqlite3", 2))).split())
    assert "The settings of 2 connections could not be read." in text
    assert "not examined" not in text


def test_exception_has_the_cause_that_its_code_decides() -> None:
    traits = {"transaction": "transfer", "raised": "Error"}
    kinds = ("SQLITE_FULL", "SQLITE_BUSY", "SQLSTATE 40P01")
    report = with_sightings(*(Sighting("exception", kind, 1, "text", traits) for kind in kinds))
    texts = [finding.text for finding in advise(report) if finding.code == "raised"]
    assert texts[0].endswith("also for -wal and temporary files; if the WAL is large: sqlstress watch FILE.")
    assert texts[1].endswith("text.")
    assert texts[2].endswith("retry the whole transaction.")


def call_cost(*, synchronous: str = "full", **costs: str) -> str:
    """Return the sentence on the costs of ten calls that took a second in all; empty if there is none."""
    traits = {"seconds": "1", "connections": "0", "opening_s": "0", "commits": "0", **costs}
    traits.setdefault("first_s", traits["opening_s"])
    if traits["connections"] != "0":
        traits = {"objects": "900", "least_opening_s": "0.05", **traits}
    settings = Sighting(CONNECTION, "sqlite3", 1, "", {**TRAITS, "synchronous": synchronous})
    report = with_sightings(settings, Sighting(CALL_COST, "read", 10, "", traits))
    return "".join(finding.text for finding in advise(report) if finding.code == "call-cost")


def test_openings_are_reported_if_they_take_much_of_the_time() -> None:
    text = call_cost(connections="10", opening_s="0.9")
    assert text.startswith("Each call of read opens a connection. Opening and the first statement took 90%")
    assert "(900 schema objects parsed each time)" in text
    assert "opens 3 connections" in call_cost(connections="30", opening_s="0.9")
    assert not call_cost(connections="10", opening_s="0.2")
    assert not call_cost(connections="5", opening_s="0.9")


def test_slow_first_statement_is_no_opening() -> None:
    """Three times the cost of an opening without load is 15% of the time: the statement is slow itself."""
    slow = {"connections": "10", "opening_s": "0.9", "least_opening_s": "0.005"}
    assert not call_cost(**slow)
    assert not call_cost(**slow, first_s="0.7")
    assert "took 40%" in call_cost(**slow, first_s="0.5")


def test_many_commits_of_a_call_are_reported_if_they_are_synced() -> None:
    assert "makes 100 commits, and each is written to the disk" in call_cost(commits="1000")
    assert not call_cost(commits="90")
    assert not call_cost(commits="1000", synchronous="normal")
