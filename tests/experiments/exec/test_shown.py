"""How commands are shown: a report that was measured once, as text and as Markdown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sqlstress.report import read
from sqlstress.report.results import Holder, Holds, WriteLock
from sqlstress.show.markdown import report_markdown
from sqlstress.show.text import report_text
from sqlstress.user_work import OURS, UNKNOWN
from tests.example_report import assert_golden

REPORT = Path(__file__).parents[2] / "corpus" / "own-exec.json"


def test_the_report_is_shown_as_kept() -> None:
    assert_golden("exec.txt", report_text(read(REPORT)))
    assert_golden("exec.md", report_markdown(read(REPORT)))


def test_who_held_the_write_lock_is_shown_by_program() -> None:
    report = read(REPORT)
    several = next(run for run in report.runs if run.case.concurrency > 1 and run.case.spec.command)
    lock = WriteLock(
        200,
        samples=400,
        longest_gap_s=0.03,
        held=Holds(380, 90, 1.9, 1.95, 0.0),
        holders=(
            Holder("python3 import.py kv.db", 2, Holds(300, 2, 0.84, 0.85, 0.1)),
            Holder("tickets add N kv.db", 41, Holds(60, 55, 0.0, 0.014, 0.9)),
            Holder(OURS, 1, Holds(16, 4, 0.02, 0.03, 0.5)),
            Holder(UNKNOWN, 3, Holds(4, 4, 0.0, 0.01, 0.2)),
        ),
    )
    unseen = replace(
        lock, samples=390, held=Holds(), holders=(), error="cannot read kv.db: Permission denied."
    )
    told = tuple(replace(trial, write_lock=lock) for trial in several.trials)
    alone = replace(several, case=replace(several.case, concurrency=1))
    runs = (
        replace(alone, trials=tuple(replace(trial, write_lock=unseen) for trial in several.trials)),
        replace(several, trials=told),
    )
    assert_golden("exec-where.txt", report_text(replace(report, runs=runs, planned=2)))
