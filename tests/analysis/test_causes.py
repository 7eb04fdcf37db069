"""Table of causes: each rule is reached by its facts. Real failures: tests/recording/test_real_causes.py."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from sqlstress.analysis.causes import RULES, Facts, Rule, code_in, diagnose, rules_of
from sqlstress.sqlite_codes import LOCKED_SHAREDCACHE, NAMES, SIGBUS, TRANSACTION_ERROR
from tests.causes_page import PAGE, page

DEFAULTS: dict[str, Any] = {
    "waited": "at once",
    "timeout": "set",
    "statement": "write",
    "transaction": "written",
    "journal": "wal",
    "open_cursor": False,
    "open_blob": False,
    "shared_cache": False,
    "exclusive": False,
    "repeated": False,
    "other_file": False,
    "busy_handler": False,
    "left_open": False,
    "rolled_back": False,
    "shared_connection": False,
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
    assert {code for rule in RULES for code in rule.codes} <= {*NAMES, SIGBUS, TRANSACTION_ERROR}


def test_repetition_is_separate_from_the_cure() -> None:
    repeating = [rule for rule in RULES if rule.repetition]
    assert [rule.name for rule in repeating] == ["read-before-write", "stale-snapshot"]
    assert not any("Repeat the transaction" in rule.cure for rule in RULES)
    assert all(rule.advice == f"{rule.cure} {rule.repetition}" for rule in repeating)


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
        open_blob=False,
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
        open_blob=False,
        shared_cache=False,
        repeated=False,
        left_open=False,
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
        ("OperationalError: cannot start a transaction within a transaction", TRANSACTION_ERROR),
        ("cannot commit - no transaction is active", TRANSACTION_ERROR),
        ("database table is locked: orders", 6),
        ("99999999", None),
        ("", None),
        ("locked out", None),
    ],
)
def test_code_in_a_line_of_a_log(text: str, code: int | None) -> None:
    assert code_in(text) == code
