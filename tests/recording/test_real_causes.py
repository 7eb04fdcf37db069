"""Each cause: a real program fails, its exception is caught, and the facts lead to the rule."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sqlstress.analysis.causes import RULES, diagnose
from sqlstress.recording import FAILED_STATEMENT
from sqlstress.recording.failed_statements import FailedStatements
from sqlstress.recording.failure_facts import code_of, explain, facts_of
from sqlstress.report.results import Sighting
from sqlstress.sqlite_codes import LOCKED_SHAREDCACHE
from sqlstress.user_work.failure_records import failure_of, with_shared_cache
from tests.recording.failing_programs import NOT_PRODUCED, PROGRAMS, REPETITIONS

POSIX = {"recovery", "moved-database", "disk-error"}
"""Causes whose programs need fcntl, resource, or the right to rename an open file."""


def test_each_rule_has_a_program_or_a_reason() -> None:
    assert {*PROGRAMS} | {*NOT_PRODUCED} == {rule.name for rule in RULES}
    assert not {*PROGRAMS} & {*NOT_PRODUCED}


@pytest.mark.parametrize("name", PROGRAMS)
def test_cause_of_a_caught_failure(name: str, file: Path, recorder: FailedStatements) -> None:
    if name in POSIX and sys.platform == "win32":
        pytest.skip("needs POSIX")
    PROGRAMS[name](file)
    ((_, sql, count, message, traits),) = [
        record for record in recorder.records() if record[0] == FAILED_STATEMENT
    ]
    (rule,) = [rule for rule in RULES if rule.name == name]
    facts = facts_of(traits, float(traits["waited_ms"]), int(traits["timeout_ms"]))
    assert diagnose(code_of(int(traits["code"]), message), facts).cause == rule
    assert count == (REPETITIONS if name == "repeated-statement" else 1)
    assert traits["at"].startswith("failing_programs.py:")
    assert explain(sql, message, traits).endswith(f"{rule.cause} {rule.advice}")


def test_holder_in_the_same_process_is_named_with_its_line(file: Path, recorder: FailedStatements) -> None:
    PROGRAMS["waits-for-itself"](file)
    ((_, _, _, _, traits),) = [record for record in recorder.records() if record[0] == FAILED_STATEMENT]
    assert traits["held_since"].startswith("BEGIN IMMEDIATE (failing_programs.py:")


def test_cache_that_is_shared_without_its_name_explains_all_failures() -> None:
    """As after `sqlite3.enable_shared_cache`: one failure has the code of a shared cache, another BUSY."""
    facts = {
        "at": "",
        "waited_ms": "0.1",
        "longest_ms": "0.1",
        "timeout_ms": "5000",
        "journal": "wal",
        "statement": "write",
        "transaction": "none",
        "began": "",
        "open_cursor": "",
        "holder": "",
        "shared_cache": "no",
    }
    failures = [
        failure_of(Sighting(FAILED_STATEMENT, "INSERT", 1, "", {**facts, "code": code}))
        for code in ("5", str(LOCKED_SHAREDCACHE))
    ]
    causes = [diagnose(failure.code, failure.facts).cause for failure in with_shared_cache(failures)]
    assert [cause and cause.name for cause in causes] == ["shared-cache-timeout", "shared-cache"]
