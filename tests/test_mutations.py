"""Every checker is shown what it must catch: changes of rows and of bytes, after a run of real processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from random import Random

import pytest

from benchmarks.mutations import flips
from benchmarks.mutations.catalogue import BYTES, CLEAN, ROWS, WORKLOADS
from benchmarks.mutations.change import Change
from benchmarks.mutations.experiment import LEVELS, Outcome, try_all, try_one
from benchmarks.mutations.results import Results, kept
from benchmarks.mutations.sites import TRUNK, sites
from benchmarks.mutations.table import markdown, summary
from benchmarks.mutations.trial import Trial
from tests.rows import mostly_thorough

KEYS = (
    "id-rowid, uuid7",
    "id-norowid, ulid",
    "pair-norowid, ulid-monotonic",
    "no-key, uuid4",
    "pair-rowid, int",
)
TRIED = [name for name in WORKLOADS if not name.startswith("keys, ") or name.removeprefix("keys, ") in KEYS]
"""The command tries all: `python -m benchmarks mutations`."""
FEW = ("kv, 1 file", "keys, id-rowid, uuid7", "cycles, a statement each", "crash, 1 file")
"""One of each kind of table."""
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def run_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Trial]:
    """Return what runs a trial of a workload, or answers with the one that it has run."""
    return cache(lambda name: WORKLOADS[name].run(1, tmp_path_factory.mktemp("trial"), "sqlite3"))


@pytest.fixture
def trial(request: pytest.FixtureRequest, run_once: Callable[[str], Trial]) -> Trial:
    """A trial of a workload, whose files may be changed."""
    return run_once(request.param)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    found: str = request.node.callspec.params["trial"]
    return found


def possible(changes: Iterable[str]) -> list[tuple[str, str]]:
    """Return (workload, change) of those changes that can be made to a workload's files."""
    return [
        (name, change)
        for name in TRIED
        for change in changes
        if not isinstance(WORKLOADS[name].changes[change], str)
    ]


def outcomes(trial: Trial, name: str, change: str) -> list[Outcome]:
    mutation = WORKLOADS[name].changes[change]
    assert not isinstance(mutation, str)
    return try_one(WORKLOADS[name], trial, change, mutation, seed=1)


def test_what_cannot_be_changed_is_said_why() -> None:
    reasons = {
        (name.partition(",")[0], change, why)
        for name in TRIED
        for change, why in WORKLOADS[name].changes.items()
        if isinstance(why, str)
    }
    no_index, no_pages = "there is no index", "there are no free pages"
    assert reasons == {
        *((name, "index byte", no_index) for name in ("kv", "classic", "cycles")),
        *((name, "trunk", no_pages) for name in ("kv", "classic", "methods", "keys", "crash")),
        *((name, "restore", "a row is written once") for name in ("classic", "methods", "keys")),
        *((name, "tear", "a transaction is one row") for name in ("kv", "classic", "cycles")),
        ("methods", "swap", "all rows hold the same value"),
        ("methods", "tear", "nothing is written"),
    }


every_workload = pytest.mark.parametrize("trial", mostly_thorough(TRIED, FEW), indirect=True)


@every_workload
def test_what_nobody_changed_is_accepted(trial: Trial) -> None:
    trial.restore()
    assert [trial.verdict(level).status for level in LEVELS] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("trial", "change"),
    mostly_thorough(possible(ROWS), [one for one in possible(ROWS) if one[0] in FEW]),
    indirect=["trial"],
)
def test_a_changed_row_is_caught_and_named(trial: Trial, name: str, change: str) -> None:
    for one in outcomes(trial, name, change):
        assert one.named, one


@pytest.mark.parametrize(
    ("trial", "change"),
    mostly_thorough(
        possible(BYTES), [one for one in possible(BYTES) if one[0] in FEW and one[1] != "pointer"]
    ),
    indirect=["trial"],
)
def test_a_flipped_byte_is_caught(trial: Trial, name: str, change: str) -> None:
    quick, full = outcomes(trial, name, change)
    assert full.failed, full
    assert full.told
    # Only integrity_check compares indices with their tables, and ids that nobody but the worker knew.
    if change != "index byte" and not (change == "row byte" and name.startswith("keys, id-")):
        assert quick.failed, quick


@pytest.mark.thorough
@every_workload
def test_every_byte_of_a_file_is_part_of_one_thing_at_most(trial: Trial, name: str) -> None:
    trial.restore()
    for bucket, path in enumerate(trial.paths):
        found = flips._sites(trial, bucket)
        places = [site.offset for site in found]
        assert len(places) == len(set(places))
        assert max(places) < path.stat().st_size
        assert (TRUNK in {site.part for site in found}) == name.startswith("cycles")
    with pytest.raises(Exception, match="header"):
        list(sites(b"no database", (), ()))


def test_a_change_is_named_only_when_all_of_it_is_told() -> None:
    change = Change("two keys", (("key 1", "page 3"), ("key 2",)))
    assert change.is_named(["key 1 is gone", "key 2 is gone"])
    assert change.is_named(["Page 3 is never used", "key 2 is gone"])
    assert not change.is_named(["key 1 is gone"])
    assert not change.is_named(["key 12 is gone", "key 21 is gone", "page 33"])


@pytest.mark.thorough
def test_what_was_tried_is_kept_and_gone_on_with(tmp_path: Path) -> None:
    workload = WORKLOADS["crash, 1 file"]
    results = kept(tmp_path / "none.json", "sqlite3")
    trial = workload.run(1, tmp_path, "sqlite3")
    found = try_all(workload, trial, 1)
    results.add(workload.name, 1, found)
    results.save(tmp_path / "kept.json")
    again = kept(tmp_path / "kept.json", "sqlite3")
    assert again == results
    with pytest.raises(ValueError, match="give another --output"):
        kept(tmp_path / "kept.json", "apsw")
    assert again.counts[workload.name][CLEAN]["full"] == [1, 0, 0]
    told = " ".join(markdown(again).split())
    assert "| crash | 0/1" in told
    assert "| crash, 1 file | 0/1" in told
    assert "- restore: a row is written once (classic, methods, keys)" in told


@pytest.mark.thorough
def test_the_same_seed_changes_the_same(tmp_path: Path) -> None:
    workload = WORKLOADS["methods, query"]
    trial = workload.run(1, tmp_path, "sqlite3")
    texts = []
    for _ in range(2):
        trial.restore()
        change = workload.changes["row byte"]
        assert not isinstance(change, str)
        texts.append(change(trial, Random("1")).text)
    assert texts[0] == texts[1]


@pytest.mark.thorough
@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
def test_the_page_shows_the_kept_tables(driver: str) -> None:
    name = {"sqlite3": "mutations", "apsw": "mutations-apsw"}[driver]
    results = kept(ROOT / f"benchmarks/results/{name}.json", driver)
    assert summary(results) in (ROOT / "docs/checkers.md").read_text(encoding="utf-8")


def test_misses_are_kept_in_words() -> None:
    results = Results("sqlite3")
    results.add("kv, 1 file", 4, [Outcome("drop", "quick", "key 3 dropped", False, False, ())])
    assert results.misses == {"drop, quick": ["kv, 1 file, seed 4: key 3 dropped; the verdict tells nothing"]}
    assert "- kv, 1 file, seed 4: key 3 dropped" in markdown(results)
