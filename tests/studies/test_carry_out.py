"""The function that runs studies, with a study that counts."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from sqlstress.engine.study import Observer, Progress, Steps
from sqlstress.errors import EnvironmentFailure
from sqlstress.report import Report
from sqlstress.studies.sweep import SAVE_PAUSE_FACTOR, run_on_bench, run_study
from tests.engine.benches import BLANK
from tests.example_report import example_report
from tests.studies.made_up import Watching

RUNS = example_report().runs


@dataclass
class Bench:
    """A bench with the report without runs, and the observer."""

    observer: Observer = field(default_factory=Watching)
    report: Report = BLANK


class Counting:
    """Counts its steps, of a second each, as planned cases."""

    def __init__(self, steps: int, problem: Exception | None = None) -> None:
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
        return replace(blank, runs=RUNS[:1], planned=self.done)


class Opening:
    """Opens a bench, and records its events."""

    kept_folder: Path | None = None
    stayed: tuple[Path, ...] = ()

    def __init__(self) -> None:
        self.events: list[str] = []

    @contextmanager
    def opened(self, observer: Observer) -> Iterator[Bench]:
        self.events.append("opened")
        try:
            yield Bench(observer)
        finally:
            self.events.append("closed")


def test_bench_is_opened_and_always_closed() -> None:
    opening, watching = Opening(), Watching()
    report = run_study(Counting(2), opening, lambda _: opening.events.append("saved"), watching)
    assert opening.events == ["opened", "saved", "saved", "closed"]
    assert report.planned == 2
    assert [progress.done for progress in watching.told] == [1, 2]
    broken = Opening()
    with pytest.raises(EnvironmentFailure):
        run_study(Counting(0, EnvironmentFailure("no WAL")), broken)
    assert broken.events == ["opened", "closed"]


@pytest.mark.parametrize(
    ("save_s", "saved_after"),
    [
        (0.0, [*range(1, 26)]),
        (0.5 / SAVE_PAUSE_FACTOR, [*range(1, 26)]),
        (9.5 / SAVE_PAUSE_FACTOR, [1, 11, 21, 25]),
    ],
)
def test_report_is_saved_after_long_steps_and_at_the_end(save_s: float, saved_after: list[int]) -> None:
    study, saved = Counting(25), list[int]()

    def save(report: Report) -> None:
        saved.append(report.planned)

    run_on_bench(study, Bench(), save, lambda: study.done + save_s * len(saved))
    assert saved == saved_after


def test_error_of_the_caller_ends_the_study_at_once() -> None:
    study = Counting(3)

    def give_up(_: Report) -> None:
        raise KeyError

    with pytest.raises(KeyError) as kept:  # with its traceback
        run_on_bench(study, Bench(), give_up)
    assert kept.tb is not None
    assert (study.done, study.closed) == (1, True)
