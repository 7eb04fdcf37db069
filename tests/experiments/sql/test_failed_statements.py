"""Facts of the failed statements of scripts."""

from contextlib import closing
from pathlib import Path

import pytest

from sqlstress.analysis.causes import diagnose
from sqlstress.recording import FAILED_STATEMENT
from sqlstress.recording.failure_facts import facts_of
from sqlstress.targets.sqlite.drivers import load_driver
from tests.experiments.sql.databases import Open, done

READS_FIRST = "BEGIN;\nSELECT * FROM account;\nUPDATE account SET balance = 0 WHERE id = 1;\nCOMMIT;"
WAITS = "BEGIN IMMEDIATE;\nUPDATE account SET balance = 0 WHERE id = 1;\nCOMMIT;"


@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
@pytest.mark.parametrize(
    ("script", "statement", "line", "cause"),
    [
        (READS_FIRST, "UPDATE account SET balance = N WHERE id = N", 3, "read-before-write"),
        (WAITS, "BEGIN IMMEDIATE", 1, "held-longer"),
    ],
)
def test_failed_statement_has_its_line_and_cause(
    start: Open, driver: str, script: str, statement: str, line: int, cause: str
) -> None:
    work, source = start(script, driver=driver, busy_timeout="150ms")
    path = Path(work.place.directions().address)
    with closing(load_driver(driver).connect(path, 1000)) as holder:
        holder.rows("BEGIN IMMEDIATE")
        done(source, 2)
    records = [record for record in source.findings().sightings if record[0] == FAILED_STATEMENT]
    ((_, sql, count, _, traits),) = records
    assert (sql, count, Path(traits["at"]).name) == (statement, 2, f"a.sql:{line}")
    named = diagnose(5, facts_of(traits, float(traits["waited_ms"]), int(traits["timeout_ms"]))).cause
    assert named and named.name == cause


@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
def test_busy_checkpoint_of_a_script_is_counted(start: Open, driver: str) -> None:
    work, source = start("PRAGMA wal_checkpoint(RESTART);", driver=driver, busy_timeout="50ms")
    path = Path(work.place.directions().address)
    connect = load_driver(driver).connect
    with closing(connect(path, 1000)) as reader, closing(connect(path, 1000)) as writer:
        reader.rows("BEGIN")
        reader.rows("SELECT * FROM account")
        writer.rows("UPDATE account SET balance = 1")
        done(source, 2)
    records = [record for record in source.findings().sightings if record[0] == FAILED_STATEMENT]
    ((_, sql, count, message, traits),) = records
    assert (sql, count, Path(traits["at"]).name) == ("PRAGMA wal_checkpoint(RESTART)", 2, "a.sql:1")
    assert message.startswith("its answer was (1, ")
    cause = diagnose(5, facts_of(traits, float(traits["waited_ms"]), int(traits["timeout_ms"]))).cause
    assert cause and cause.name == "busy-checkpoint"
