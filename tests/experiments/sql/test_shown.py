"""Presentation of scripts: tables, sentences, page."""

from dataclasses import replace
from typing import Any

from sqlstress.experiment import get_experiment
from sqlstress.experiments.sql.spec import Scripted, Scripts
from sqlstress.report import Arrived, Check, Latency, Report, Run, Verdict
from sqlstress.report.case import Arrivals, Case, Server
from sqlstress.show.formats import FORMATS
from sqlstress.show.page.html_file import report_html
from sqlstress.show.text import report_text
from sqlstress.user_work import AFTER, UNDER
from sqlstress.user_work.options import Data, Invariant
from tests.example_report import assert_golden, example_report

EXAMPLE = example_report()
MONEY = Invariant("no money comes or goes", "inv.sql:2", "SELECT 1 WHERE 0")
SPEC = Scripts(
    scripts=(Scripted("transfer.sql", "SELECT 1;", 3), Scripted("report.sql", "SELECT 2;")),
    data=Data(setup="schema.sql", setup_digest="0" * 64, checks=(MONEY,)),
    max_tries=10,
)
HELD = Verdict((Check("quick_check", "ok", 1), Check(UNDER, "ok", 7), Check(AFTER, "ok", 1)))
BROKEN = Verdict(
    (
        Check(UNDER, "failed", 7, 2, ("no money comes or goes: (99970)",)),
        Check(AFTER, "failed", 1, 1, ("no money comes or goes: (99870)",)),
    )
)


def latency(ms: float, count: int) -> Latency:
    ns = ms * 1e6
    return Latency(count, ns, 2 * ns, 9 * ns, 20 * ns if count > 10_000 else None, int(30 * ns))


def run(processes: int, tps: float, verdict: Verdict, spec: Scripts = SPEC, **fields: Any) -> Run:
    """Return a run of three passes, whose figures differ by 1%."""
    (trial, *_) = EXAMPLE.runs[0].trials
    worker = replace(trial.workers[0], operations={"transfer.sql": 750, "report.sql": 250}, bins=())
    kinds = {"transfer.sql": latency(0.3, 7500), "report.sql": latency(0.05, 25_000)}
    trials = tuple(
        replace(
            trial,
            index=index,
            tps=tps * (1 + (index - 1) / 100),
            transactions=1000,
            latency={**kinds, "transfer.sql:4 COMMIT": latency(0.2, 7500)},
            workers=(worker,) * processes,
            verdict=verdict,
            half_ratio=None,
            **fields,
        )
        for index in range(3)
    )
    return Run(Case("sql", concurrency=processes, repeat=3, seed=1, spec=spec), trials)


def report(*runs: Run) -> Report:
    return replace(EXAMPLE, runs=runs, planned=len(runs), command=("sqlstress", "sql"))


def three() -> Report:
    return report(
        run(1, 3000, HELD),
        run(2, 4200, HELD, busy=30, busy_snapshot=12),
        run(
            4, 4000, BROKEN, busy=90, busy_snapshot=40, failed=9, fairness=0.6, longest_wait_ns=2_400_000_000
        ),
    )


def test_scripts_are_shown_as_kept() -> None:
    assert_golden("sql.txt", report_text(three()))


def test_unusual_scripts_of_a_report_are_shown_and_may_write() -> None:
    odd = replace(SPEC, scripts=(Scripted("a.sql", "", 0), Scripted("b.sql", "no SQL", 0)))
    found = report(run(1, 3000, HELD, spec=odd))
    for name, form in FORMATS.items():
        assert form(found), name
    assert get_experiment("sql").writes(found.runs[0].case)


def test_failures_at_a_server_have_a_count_and_a_share() -> None:
    refused = run(4, 4000, HELD, failed=9)
    text = report_text(
        report(replace(refused, case=replace(refused.case, driver="psycopg", server=Server())))
    )
    assert "27 transactions gave up" in " ".join(text.split())


def test_store_without_its_own_check_has_no_sentence_on_errors() -> None:
    skipped = replace(HELD, checks=(replace(HELD.checks[0], status="skipped"), *HELD.checks[1:]))
    said = " ".join(report_text(report(run(1, 3000, HELD), run(2, 4000, skipped))).split())
    assert "data (verified): ok = every check passed." in said and "nothing wrong" not in said


def test_ledger_option_is_shown_with_its_value() -> None:
    found = report(run(2, 4000, HELD), run(2, 3000, HELD, spec=replace(SPEC, ledger=True)))
    assert "- ledger: on " in report_text(found)


def test_scripts_of_one_kind_have_their_percentiles_in_the_first_table() -> None:
    alone = replace(SPEC, scripts=SPEC.scripts[:1])
    found = run(2, 4000, HELD, spec=alone)
    worker = replace(found.trials[0].workers[0], operations={"transfer.sql": 1000})
    only = {"transfer.sql": latency(0.3, 7500)}
    trials = tuple(replace(trial, workers=(worker,) * 2, latency=only) for trial in found.trials)
    text = report_text(report(replace(found, trials=trials)))
    assert " p50 " in text and " 2.70 " in text and "what " not in text


def run_at_rate(rate: int) -> Run:
    """Return a run at a rate, whose operations waited 0.1 s before they began."""
    found = run(2, rate, HELD, fairness=0.2, longest_wait_ns=2_400_000_000)
    due = {"transfer.sql": latency(100.3, 7500), "report.sql": latency(100.05, 25_000)}
    arrived = Arrived(33_000, 0, 0, due, latency(0.002, 32_500))
    trials = tuple(replace(trial, arrived=arrived) for trial in found.trials)
    return replace(found, case=replace(found.case, arrivals=Arrivals(rate)), trials=trials)


def test_latency_at_a_rate_counts_from_the_due_time() -> None:
    text = report_text(report(run_at_rate(500), run_at_rate(1000)))
    assert "open loop, poisson arrivals" in " ".join(text.split())
    row = next(line for line in text.splitlines() if line.startswith("transfer.sql  "))
    assert row.split()[:3] == ["transfer.sql", "2", "500"] and row.split()[-2:] == ["3,009", "2.70"]
    part = next(line for line in text.splitlines() if line.startswith("transfer.sql:4 COMMIT"))
    assert part.split()[-2:] == ["6.00", "1.80"]
    said = " ".join(text.split())
    assert "service: from its start, as for all parts of operations." in said
    assert "every check passed, and SQLite finds no error" in said and "on 1 bucket" not in said
    # Chance decides which process gets more, and in which queue an operation waits.
    assert "Starvation" not in said


def test_page_reports_held_checks_and_nothing_unchecked() -> None:
    held = report_html(report(run(1, 5000.0, HELD)))
    assert "<strong>proved</strong><span>at the end of each trial: every check passed. This does not" in held
    few = report_html(report(run(1, 5000.0, HELD, failed=900)))
    assert "<span>of what was done: every check passed</span>" in few
    assert "acknowledged" not in held + few
