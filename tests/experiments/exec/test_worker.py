"""The worker's half of the experiment with commands, where none is run."""

from __future__ import annotations

import sys
from pathlib import Path

from sqlstress.experiments.exec.worker import ExecSource
from sqlstress.plan import cases_of
from sqlstress.report.case import Case
from sqlstress.targets.dry.store import DryPlace


def source_of(case: Case, worker: int) -> ExecSource:
    return ExecSource(case, DryPlace(case, Path()), worker, 1, (None, [0], "trial"))


def test_numbers_of_commands_that_were_not_run_are_given_to_the_next_ones() -> None:
    case = cases_of({"command": [sys.executable, "{n}"], "concurrency": 3, "alone": True, "seed": 1}, "exec")[
        0
    ]
    numbers: list[int] = []
    for worker in (1, 2, 3):
        source = source_of(case, worker)
        for run in (2, 0, 1):
            chunk = source.next_chunk(4)
            numbers += [int(words[1]) for words in list(chunk.params)[:run]]
            source.settle(chunk, run, [], source.stamps)
    assert sorted(numbers) == list(range(1, 10))
