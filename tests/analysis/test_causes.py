"""Table of causes: each rule is reached by its facts, and real failures of SQLite have the right cause."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal

import pytest

from sqlstress.analysis.causes import RULES, SIGBUS, Facts, Rule, code_in, diagnose, rules_of
from sqlstress.sqlite_codes import LOCKED_SHAREDCACHE, NAMES
from tests.causes_page import PAGE, page

DEFAULTS: dict[str, Any] = {
    "waited": "at once",
    "timeout": "set",
    "statement": "write",
    "transaction": "written",
    "journal": "wal",
    "open_cursor": False,
    "shared_cache": False,
    "exclusive": False,
    "repeated": False,
    "other_file": False,
    "holder": "another process",
}
"""Values of the facts that a rule does not name."""


def facts_of(rule: Rule) -> Facts:
    """Return complete facts that agree with a rule."""
    named = {field.name: getattr(rule.when, field.name) for field in fields(Facts)}
    return Facts(**{name: DEFAULTS[name] if value is None else value for name, value in named.items()})


@pytest.mark.parametrize(("rule", "code"), [(rule, code) for rule in RULES for code in rule.codes])
def test_complete_facts_lead_to_the_rule(rule: Rule, code: int) -> None:
    assert diagnose(code, facts_of(rule)).cause == rule


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rule_is_possible_without_facts(rule: Rule) -> None:
    assert all(rule in diagnose(code, Facts()).possible for code in rule.codes)


def test_names_and_sentences_of_rules() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(text.endswith(".") for rule in RULES for text in (rule.cause, rule.cure))
    assert {code for rule in RULES for code in rule.codes} <= {*NAMES, SIGBUS}


def test_page_has_the_rules() -> None:
    assert page() == PAGE.read_text(encoding="utf-8")


def test_extended_code_without_rules_has_those_of_its_primary_code() -> None:
    assert rules_of(5 | 99 << 8) == rules_of(5)
    assert [rule.name for rule in rules_of(778)] == ["disk-error"]


def test_failure_that_no_rule_explains_is_unknown() -> None:
    facts = Facts(
        waited="at once",
        timeout="set",
        statement="write",
        transaction="none",
        open_cursor=False,
        shared_cache=False,
        exclusive=False,
        repeated=False,
        other_file=False,
    )
    assert diagnose(5, facts).possible == ()


def test_unknown_fact_leaves_several_causes() -> None:
    partial_facts = Facts(
        waited="at once",
        timeout="set",
        transaction="read",
        statement="write",
        shared_cache=False,
        repeated=False,
    )
    assert [rule.name for rule in diagnose(5, partial_facts).possible] == ["open-cursor", "read-before-write"]
    assert diagnose(5, partial_facts).cause is None
    assert diagnose(5, replace(partial_facts, open_cursor=False)).cause.name == "read-before-write"  # type: ignore[union-attr]


def test_code_of_a_shared_cache_needs_no_other_sign_of_it() -> None:
    cause = diagnose(LOCKED_SHAREDCACHE, Facts(waited="at once", shared_cache=False)).cause
    assert cause and cause.name == "shared-cache"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("5", 5),
        ("517", 517),
        ("SQLITE_BUSY", 5),
        ("busy_snapshot", 517),
        ("sqlite3.OperationalError: database is locked", 5),
        ("database is locked (5) (SQLITE_BUSY)", 5),
        ("database is locked (517)", 517),
        ("SqliteError: database is locked, code: 'SQLITE_BUSY_SNAPSHOT'", 517),
        ("2026-11-24 12:30:05 worker 5: disk I/O error", 10),
        ("Bus error (core dumped)", SIGBUS),
        ("database table is locked: orders", 6),
        ("99999999", None),
        ("", None),
        ("locked out", None),
    ],
)
def test_code_in_a_line_of_a_log(text: str, code: int | None) -> None:
    assert code_in(text) == code


# Real failures.

Situation = Callable[[sqlite3.Connection, sqlite3.Connection], Iterator[tuple[str, Facts]]]


def read_before_write(this: sqlite3.Connection, other: sqlite3.Connection) -> Iterator[tuple[str, Facts]]:
    this.execute("BEGIN")
    this.execute("SELECT count(*) FROM t").fetchall()
    other.execute("BEGIN IMMEDIATE")
    yield "INSERT INTO t VALUES (1)", Facts(transaction="read", open_cursor=False, statement="write")


def stale_snapshot(this: sqlite3.Connection, other: sqlite3.Connection) -> Iterator[tuple[str, Facts]]:
    this.execute("BEGIN")
    this.execute("SELECT count(*) FROM t").fetchall()
    other.execute("INSERT INTO t VALUES (1)")
    yield "INSERT INTO t VALUES (1)", Facts(transaction="read", open_cursor=False, statement="write")


def open_cursor(this: sqlite3.Connection, other: sqlite3.Connection) -> Iterator[tuple[str, Facts]]:
    this.executemany("INSERT INTO t VALUES (?)", [(number,) for number in range(9)])
    cursor = this.execute("SELECT x FROM t")
    cursor.fetchone()
    other.execute("INSERT INTO t VALUES (1)")
    yield "BEGIN IMMEDIATE", Facts(transaction="none", open_cursor=True, statement="begin")


def held_longer(this: sqlite3.Connection, other: sqlite3.Connection) -> Iterator[tuple[str, Facts]]:
    other.execute("BEGIN IMMEDIATE")
    facts = Facts(transaction="none", open_cursor=False, statement="begin", holder="another process")
    yield "BEGIN IMMEDIATE", facts


@pytest.mark.parametrize(
    ("situation", "name"),
    [
        (read_before_write, "read-before-write"),
        (stale_snapshot, "stale-snapshot"),
        (open_cursor, "open-cursor"),
        (held_longer, "held-longer"),
    ],
)
def test_cause_of_a_real_failure(situation: Situation, name: str, tmp_path: Path) -> None:
    path, timeout_s = tmp_path / "app.db", 0.3
    with (
        closing(sqlite3.connect(path, timeout=timeout_s, isolation_level=None)) as this,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        this.execute("PRAGMA journal_mode = WAL")
        this.execute("CREATE TABLE t (x)")
        for sql, facts in situation(this, other):
            start_s = time.perf_counter()
            with pytest.raises(sqlite3.OperationalError) as caught:
                this.execute(sql)
            late = time.perf_counter() - start_s >= timeout_s
            waited: Literal["at once", "the timeout"] = "the timeout" if late else "at once"
            known = dict.fromkeys(("shared_cache", "exclusive", "repeated", "other_file"), False)
            complete_facts = replace(facts, waited=waited, timeout="set", journal="wal", **known)  # type: ignore[arg-type]
            cause = diagnose(caught.value.sqlite_errorcode, complete_facts).cause
            assert cause and cause.name == name
