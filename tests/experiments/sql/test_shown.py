"""What a report of scripts says: its tables, its sentences, its page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlstress.experiments.sql.spec import Scripted, Scripts
from sqlstress.own.data import Data, Invariant
from sqlstress.render import FORMATS
from sqlstress.render.markdown import report_markdown
from sqlstress.render.text import report_text
from sqlstress.report import Check, Latency, Report, Run, Verdict, from_json, to_json
from sqlstress.report.case import Case
from tests.example_report import assert_golden, example_report

EXAMPLE = example_report()
MONEY = Invariant("no money comes or goes", "inv.sql:2", "SELECT 1 WHERE 0")
SPEC = Scripts(
    scripts=(Scripted("transfer.sql", "SELECT 1;", 3), Scripted("report.sql", "SELECT 2;")),
    data=Data(setup="schema.sql", setup_digest="0" * 64, checks=(MONEY,)),
    max_tries=10,
)
HELD = Verdict((Check("checks under load", "ok", 7), Check("checks after the load", "ok", 1)))
BROKEN = Verdict(
    (
        Check("checks under load", "failed", 7, 2, ("no money comes or goes: (99970)",)),
        Check("checks after the load", "failed", 1, 1, ("no money comes or goes: (99870)",)),
    )
)


def latency(ms: float, count: int) -> Latency:
    ns = ms * 1e6
    return Latency(count, ns, 2 * ns, 9 * ns, 20 * ns if count > 10_000 else None, int(30 * ns))


def run(processes: int, tps: float, verdict: Verdict, spec: Scripts = SPEC, **fields: Any) -> Run:
    """Return a run of three passes, whose figures differ by a hundredth."""
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
            4,
            4000,
            BROKEN,
            busy=90,
            busy_snapshot=40,
            failed=9,
            fairness=0.6,
            longest_wait_ns=2_400_000_000,
        ),
    )


def test_the_text_and_the_markdown_are_as_they_were() -> None:
    assert_golden("sql.txt", report_text(three()))
    assert_golden("sql.md", report_markdown(three()))


def test_a_report_survives_its_json_and_is_shown_in_every_format() -> None:
    again = from_json(to_json(three()))
    assert again == three()
    for name, form in FORMATS.items():
        assert form(again) == form(three()), name


def test_what_a_ledger_costs_is_told_from_pairs() -> None:
    found = report(run(2, 4000, HELD), run(2, 3000, HELD, spec=replace(SPEC, ledger=True)))
    assert "- ledger on: " in report_text(found)


def test_scripts_of_one_kind_have_their_percentiles_in_the_first_table() -> None:
    alone = replace(SPEC, scripts=SPEC.scripts[:1])
    found = run(2, 4000, HELD, spec=alone)
    worker = replace(found.trials[0].workers[0], operations={"transfer.sql": 1000})
    only = {"transfer.sql": latency(0.3, 7500)}
    trials = tuple(replace(trial, workers=(worker,) * 2, latency=only) for trial in found.trials)
    text = report_text(report(replace(found, trials=trials)))
    assert " p50 " in text and " 2.70 " in text and "what " not in text
