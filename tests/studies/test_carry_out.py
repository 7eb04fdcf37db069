"""Tests of the one way in which a study is carried out, with a study that counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.engine.study import NOBODY, Nobody, Observer, Progress, Steps
from sqlstress.errors import EnvironmentFailure, Interrupted
from sqlstress.report import Report
from sqlstress.studies.sweep import carry_out, follow
from tests.engine.benches import BLANK
from tests.example_report import example_report

RUNS = example_report().runs


class Bench:
    """Knows the report without runs, and who watches."""

    report = BLANK

    def __init__(self, observer: Observer = NOBODY) -> None:
        self.observer = observer


class Counting:
    """Counts its steps as planned cases."""

    def __init__(self, steps: int, problem: Exception | None = None, save_every_s: float = 0.0) -> None:
        self.save_every_s = save_every_s
        self._steps, self._problem = steps, problem
        self.done, self.closed = 0, False

    def steps(self, bench: Bench) -> Steps:
        try:
            for _ in range(self._steps):
                self.done += 1
                bench.observer.progress(Progress("", self.done, self._steps, "", 0.0))
                yield
            if self._problem:
                raise self._problem
        finally:
            self.closed = True

    def report(self, blank: Report) -> Report:
        return replace(blank, runs=blank.runs + RUNS[: self.done])


class Opening:
    """Opens a bench, and writes down what became of it."""

    kept_folder: Path | None = None
    stayed: tuple[Path, ...] = ()

    def __init__(self) -> None:
        self.told: list[str] = []

    @contextmanager
    def opened(self, observer: Observer) -> Iterator[Bench]:
        self.told.append("opened")
        try:
            yield Bench(observer)
        finally:
            self.told.append("closed")


def test_a_bench_is_opened_for_it_and_closed_afterwards() -> None:
    opening, saved, seen = Opening(), list[Report](), list[Progress]()

    class Seeing(Nobody):
        def progress(self, progress: Progress) -> None:
            seen.append(progress)

    def save(report: Report) -> None:
        opening.told.append("saved")
        saved.append(report)

    report = carry_out(Counting(2), opening, save, Seeing())
    assert opening.told == ["opened", "saved", "saved", "closed"]
    assert (saved[-1], len(report.runs)) == (report, 2)
    assert [progress.done for progress in seen] == [1, 2]


def test_nobody_needs_to_listen() -> None:
    assert len(carry_out(Counting(3), Opening()).runs) == 3


def test_a_problem_closes_the_bench_and_is_raised() -> None:
    opening = Opening()
    with pytest.raises(EnvironmentFailure):
        carry_out(Counting(0, EnvironmentFailure("no WAL")), opening)
    assert opening.told == ["opened", "closed"]


def test_it_is_saved_no_more_often_than_it_wants_and_at_the_end() -> None:
    now, saved = [0.0], list[int]()

    class Slow(Counting):
        def report(self, blank: Report) -> Report:
            return replace(blank, runs=RUNS[:1], planned=self.done)

        def steps(self, bench: Bench) -> Steps:
            for _ in super().steps(bench):
                now[0] += 1.0
                yield

    study = Slow(25, save_every_s=10.0)
    follow(study, Bench(), lambda report: saved.append(report.planned), lambda: now[0])
    assert saved == [1, 11, 21, 25]


def test_what_was_saved_already_is_not_saved_again_at_the_end() -> None:
    saved = list[Report]()
    follow(Counting(3), Bench(), saved.append)
    assert [len(report.runs) for report in saved] == [1, 2, 3]


def test_a_study_that_is_stopped_before_it_holds_anything_is_not_saved() -> None:
    saved = list[Report]()
    report = follow(Counting(0, Interrupted("stopped by SIGINT")), Bench(), saved.append)
    assert (report.interrupted, report.runs, saved) == (True, (), [])


def test_a_caller_that_raises_ends_the_study_at_once() -> None:
    study = Counting(3)

    def give_up(_: Report) -> None:
        raise KeyError

    with pytest.raises(KeyError) as kept:  # its traceback, too
        follow(study, Bench(), give_up)
    assert kept.tb is not None
    assert (study.done, study.closed) == (1, True)
