"""Programs that answer lines, and commands that do several operations, as a user runs them."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.analysis.group import group_runs
from sqlstress.experiments.exec import CLOSED, MOMENTS, OPEN
from sqlstress.experiments.exec.show import starting
from sqlstress.report import Verdict
from sqlstress.report.results import Check, Sighting
from tests.cli.conftest import Cli, Said, saved
from tests.cli.test_exec import SOME, answers, database, marked
from tests.rows import thorough

PYTHON = (sys.executable, "-S", "-E", "-u", "-c")
ADDING = """
import os, sqlite3, sys
db = sqlite3.connect(os.environ["SQLSTRESS_DATABASE"], 30, isolation_level=None)
for line in sys.stdin:
    db.execute("INSERT INTO log (number, worker) VALUES (?, ?)", (int(line), sys.argv[1]))
    print("ok")
"""


def lines(cli: Cli, code: str, *words: str, options: tuple[str, ...] = ()) -> Said:
    options = ("--lines", "--ops", "5", "--repeat", "1", "-c", "2", "-o", "report.json", *options)
    return cli("exec", *options, "--", *PYTHON, code, *words)


def test_each_line_is_an_operation_of_one_program_per_process(cli: Cli) -> None:
    database("app.db")
    Path("checks.sql").write_text(
        "-- no number twice\nSELECT number FROM log GROUP BY number HAVING count(*) > 1;\n"
    )
    said = lines(cli, ADDING, "{worker}", options=("--database", "app.db", "--check", "checks.sql"))
    assert (said.code, said.err) == (0, "")
    (run,) = saved().runs
    assert (run.trials[0].transactions, run.verdict.status) == (10, "ok")
    assert {sighting.topic for sighting in run.trials[0].sightings} <= {MOMENTS}
    assert "operations" in said.out and "commands" not in said.out.split("- While")[0]


def test_program_that_exits_or_answers_wrongly_is_reported_and_restarted(cli: Cli) -> None:
    code = """
import sys
for number, line in enumerate(sys.stdin):
    print(["ok", "error database is locked", "hello", sys.exit][number] if number < 3 else sys.exit(7))
"""
    said = lines(cli, code, options=("--max-failed", "100%", "--details"))
    assert said.code == 0
    kinds = {answer.what for answer in answers("answer")}
    assert kinds == {"database is locked", "unexpected answer: 'hello'"}
    assert saved().runs[0].trials[0].failed
    assert "Answers other than ok" in said.out and marked() == []


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("print('listening')", "answered 'listening'. With --lines it must answer"),
        thorough(
            "import time; time.sleep(1000)", "did not answer within 0.5 s. It may not flush its output."
        ),
        thorough(
            "raise KeyError('DB_URL')", "ended before it answered, with exit code 1. Its standard error"
        ),
    ],
)
def test_program_without_a_first_answer_is_an_error_before_any_load(
    cli: Cli, code: str, problem: str
) -> None:
    said = lines(cli, code, options=("--timeout", "500ms"))
    assert (said.code, len(said.lines)) == (4, 1)
    assert problem in said.err and len(said.err) < 400
    assert marked() == []


def test_operations_within_a_command_are_counted_each(cli: Cli) -> None:
    words = (*PYTHON, "import sys; assert sys.argv[1] == '20'", "{inner}")
    said = cli("exec", *SOME, "-c", "2", "--inner", "20", "-o", "report.json", "--", *words)
    assert said.code == 0
    (trial,) = saved().runs[0].trials
    assert (trial.transactions, trial.latency["command"].count) == (80, 4)
    assert "operations" in said.out


def test_finding_that_starts_hide_races_needs_a_verdict_without_failure(cli: Cli) -> None:
    cli("exec", *SOME, "-c", "2", "-o", "report.json", "--", *PYTHON, "pass")
    (run,) = saved().runs

    def shares(seen: int, unseen: int, verdict: Verdict = run.trials[0].verdict) -> list[float]:
        moments = tuple(Sighting(MOMENTS, what, n) for what, n in ((OPEN, seen), (CLOSED, unseen)))
        trial = replace(run.trials[0], sightings=moments, verdict=verdict)
        (group,) = group_runs([replace(run, trials=(trial,))])
        return [finding.facts["share"] for finding in starting(group)]

    assert shares(1, 99) == [0.99]
    assert shares(20, 80) == []
    assert shares(0, 20) == []  # too few to say so
    assert shares(1, 99, Verdict((Check("checks after the load", "failed"),))) == []
