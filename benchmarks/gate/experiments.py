"""The experiments: whole A/B tests, one after the other, kept so that they can be gone on with."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.gate.slowed import Slowed
from sqlstress.analysis.ab import differences
from sqlstress.errors import UsageError
from sqlstress.experiments.kv.experiment import Load
from sqlstress.report import AbTest, Arm, write_atomically
from sqlstress.report.case import Case, Settings
from sqlstress.report.study_results import DRAWN
from sqlstress.statistics.sequential import looks
from sqlstress.studies.ab import AbStudy, first_arm
from sqlstress.studies.slices import SliceBench
from sqlstress.studies.sweep import follow

Asked = tuple[float, float]
"""A kind of test: by which share B is slowed, and which share is allowed."""
SEEDS = 1000
"""Between the seeds of two experiments: more than the pairs of one take."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How every slice is measured."""

    duration_s: float
    warmup_s: float
    concurrency: int
    synchronous: str
    read_ratio: float
    key_space: int
    max_pairs: int
    max_time_s: float

    def case(self, share: float, seed: int) -> Case:
        """Return a slice of an arm that is slowed by a share."""
        return Case(
            driver=Slowed(share),
            concurrency=self.concurrency,
            duration_s=self.duration_s,
            warmup_s=self.warmup_s,
            seed=seed,
            settings=Settings(synchronous=self.synchronous),
            spec=Load(read_ratio=self.read_ratio, key_space=self.key_space),
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one experiment ended."""

    share: float
    """By which share B was slowed, 0 to under 1."""
    max_drop: float
    """Which share was allowed."""
    seed: int
    verdict: str
    """fail, pass or inconclusive; undecided where a slice could not be measured."""
    pairs: int
    ratio: float | None
    """B over A, as the last look estimated it."""
    seconds: float
    differences: tuple[float, ...] = ()
    """Of each pair, so that another rule can be tried on them: logarithms of B over A."""
    error: str | None = None


@dataclass(slots=True)
class Results:
    """What has been measured, as it is kept in a file."""

    setting: Setting
    created: str = ""
    command: tuple[str, ...] = ()
    revision: str = ""
    surroundings: tuple[str, ...] = ()
    """Host, file system and library, a line each."""
    outcomes: list[Outcome] = field(default_factory=list)

    def of(self, asked: Asked) -> list[Outcome]:
        """Return the outcomes of one kind of test."""
        return [one for one in self.outcomes if (one.share, one.max_drop) == asked]

    def save(self, path: Path) -> None:
        """Write everything."""
        write_atomically(path, json.dumps(asdict(self), indent=1) + "\n")


def kept(path: Path, setting: Setting) -> Results:
    """Return what a file holds, or nothing yet. Raises UsageError when it was measured otherwise."""
    if not path.exists():
        return Results(setting)
    plain: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if plain["setting"] != asdict(setting):
        raise UsageError(f"{path} was measured with other slices: give them again, or another --output.")
    outcomes = [
        Outcome(**{**each, "differences": tuple(each["differences"])}) for each in plain.pop("outcomes")
    ]
    return replace(Results(**plain), setting=setting, outcomes=outcomes)


def to_come(results: Results, wanted: dict[Asked, int]) -> Iterator[Asked]:
    """Yield the tests that are still wanted, so that all kinds of them come to their ends together."""
    while True:
        left = {asked: count - len(results.of(asked)) for asked, count in wanted.items()}
        asked = max(left, key=lambda one: left[one] / wanted[one])
        if left[asked] <= 0:
            return
        yield asked


def experiment(bench: SliceBench, setting: Setting, asked: Asked, seed: int) -> Outcome | None:
    """Carry out one A/B test; None when it was interrupted."""
    share, max_drop = asked
    cases = [setting.case(own, seed) for own in (0.0, share)]
    test = AbTest(
        "tps",
        max_drop,
        (Arm("A"), Arm("B")),
        first_arm(seed),
        order=DRAWN,
        max_pairs=setting.max_pairs,
        max_time_s=setting.max_time_s,
    )
    begun = time.monotonic()
    report = follow(AbStudy(([cases[0]], [cases[1]]), test, looks(setting.max_pairs)), bench)
    if report.interrupted:
        return None
    assert report.ab
    error = report.ab.reason or next((run.error for run in report.runs if run.error), None)
    return Outcome(
        share=share,
        max_drop=max_drop,
        seed=seed,
        verdict=report.ab.verdict,
        pairs=len(report.runs[0].trials),
        ratio=report.ab.looks[-1].ratio if report.ab.looks else None,
        seconds=time.monotonic() - begun,
        differences=tuple(round(one, 5) for cell in differences(report, report.ab) for one in cell),
        error=error,
    )
