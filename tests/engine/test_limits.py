"""The number of file descriptors that a case needs, and the limit."""

import gc
import sys
from multiprocessing import active_children
from pathlib import Path

import pytest

from sqlstress.engine import session as limits
from sqlstress.engine.study import Observer
from sqlstress.engine.trial import TrialRunner
from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.kv.spec import Checkpointing, Load
from sqlstress.report.case import Case
from sqlstress.system.interrupt import StopSignals
from sqlstress.targets.sqlite import TARGET

if sys.platform == "win32":
    pytest.skip("handles are not limited there", allow_module_level=True)

import resource

INFINITE = resource.RLIM_INFINITY


class Limit:
    """A fake of the system's limit: soft, hard, and a maximum above which setting it fails."""

    def __init__(self, soft: int, hard: int, most: int = 1 << 40) -> None:
        self.soft, self.hard, self.most = soft, hard, most

    def get(self, which: int) -> tuple[int, int]:
        assert which == resource.RLIMIT_NOFILE
        return self.soft, self.hard

    def set(self, which: int, limits: tuple[int, int]) -> None:
        if limits[0] > self.most:
            raise ValueError("current limit exceeds maximum limit")
        self.soft, self.hard = limits


def limits_after_provide(monkeypatch: pytest.MonkeyPatch, limit: Limit, count: int) -> tuple[int, int]:
    monkeypatch.setattr(resource, "getrlimit", limit.get)
    monkeypatch.setattr(resource, "setrlimit", limit.set)
    limits.raise_descriptor_limit(count)
    return limit.soft, limit.hard


@pytest.mark.parametrize(
    ("soft", "hard", "expected"),
    [
        (256, 4096, 3064),
        (256, INFINITE, 3064),
        (3064, 3064, 3064),
        (5000, 5000, 5000),
        (INFINITE,) * 2 + (-1,),
    ],
)
def test_soft_limit_is_raised_to_the_need_and_never_lowered(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, expected: int
) -> None:
    assert limits_after_provide(monkeypatch, Limit(soft, hard), 3064) == (expected, hard)


def test_too_low_hard_limit_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnvironmentFailure, match=r"3064 open files, .*limit is 1024.*ulimit -Hn 3064"):
        limits_after_provide(monkeypatch, Limit(256, 1024), 3064)
    with pytest.raises(EnvironmentFailure, match=r"30064 open files, and raising the limit of 256 failed"):
        limits_after_provide(monkeypatch, Limit(256, INFINITE, most=10_240), 30_064)


def test_needed_descriptors_grow_with_buckets_and_workers() -> None:
    single = limits.needed_descriptors(Case())
    assert single > TARGET.DESCRIPTORS + limits.DESCRIPTORS_PER_WORKER + limits.SPARE_DESCRIPTORS
    assert limits.needed_descriptors(Case(buckets=1000)) - single == TARGET.DESCRIPTORS * 999
    assert limits.needed_descriptors(Case(concurrency=1000)) - single == limits.DESCRIPTORS_PER_WORKER * 999
    assert limits.needed_descriptors(Case(driver="dry", buckets=1000)) == limits.needed_descriptors(
        Case(driver="dry")
    )


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="there is no /proc")
def test_parent_holds_the_descriptors_provided_for(tmp_path: Path) -> None:
    counts: list[int] = []

    class Counting(Observer):
        def phase(self, name: str) -> None:
            counts.append(len(list(Path("/proc/self/fd").iterdir())))

    checkpointing = Checkpointing("restart", 0.02, pinned_reader=True)
    load = Load(key_space=100, checkpointing=checkpointing)
    case = Case(buckets=30, concurrency=4, ops=1, warmup_s=0.0, spec=load)
    active_children()
    gc.collect()  # close now what earlier tests have dropped, not during the count
    before = len(list(Path("/proc/self/fd").iterdir()))
    with StopSignals() as signals:
        TrialRunner(tmp_path, False, signals, Counting(), 0).run(case, 0)
    _, starting, measuring, *_ = (count - before for count in counts)
    # One connection stays with each file and keeps an extra descriptor. The proof opens two more.
    kept = (TARGET.DESCRIPTORS - 2) * 30
    assert kept <= starting <= limits.needed_descriptors(case) - limits.DESCRIPTORS_PER_WORKER * 7
    assert limits.DESCRIPTORS_PER_WORKER * 7 + kept <= measuring <= limits.needed_descriptors(case)
