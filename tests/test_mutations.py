"""Every checker is shown what it must catch: changes of rows and of bytes, after a run of real processes."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks.document import write
from benchmarks.mutations.catalogue import BYTES, CLEAN, ROWS, WORKLOADS
from benchmarks.mutations.flips import TRUNK, sites, sites_of
from benchmarks.mutations.trial import Change
from benchmarks.mutations.tried import LEVELS, Outcome, Results, kept, markdown, try_all
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
        *((name, "trunk", no_pages) for name in ("kv", "classic", "methods", "keys", "crash", "hunt")),
        *((name, "restore", "a row is written once") for name in ("classic", "methods", "keys")),
        *((name, "tear", "a transaction is one row") for name in ("kv", "classic", "cycles")),
        ("methods", "swap", "all rows hold the same value"),
        ("methods", "tear", "nothing is written"),
    }


@pytest.mark.parametrize("name", mostly_thorough(TRIED, FEW))
def test_what_nobody_changed_is_accepted_and_every_change_is_caught(name: str, tmp_path: Path) -> None:
    workload = WORKLOADS[name]
    trial = workload.run(1, tmp_path, "sqlite3")
    found = {(one.change, one.level): one for one in try_all(workload, trial, 1)}
    assert not any(found[CLEAN, level].failed for level in LEVELS)
    for change in (change for change in (*ROWS, *BYTES) if not isinstance(workload.changes[change], str)):
        quick, full = (found[change, level] for level in LEVELS)
        if change in ROWS:
            assert quick.named and full.named, (quick, full)
            continue
        assert full.failed and full.told, full
        # Only integrity_check compares indices with their tables, and ids that nobody but the worker knew.
        if change != "index byte" and not (change == "row byte" and name.startswith("keys, id-")):
            assert quick.failed, quick
    trial.restore()
    for bucket, path in enumerate(trial.paths):
        sites = sites_of(trial, bucket)
        places = [site.offset for site in sites]
        assert len(places) == len(set(places)), "every byte is part of one thing at most"
        assert max(places) < path.stat().st_size
        assert (TRUNK in {site.part for site in sites}) == name.startswith("cycles")


def test_what_is_no_database_has_no_bytes_to_flip() -> None:
    with pytest.raises(Exception, match="header"):
        list(sites(b"no database", (), ()))


def test_a_change_is_named_only_when_all_of_it_is_told() -> None:
    change = Change("two keys", (("key 1", "page 3"), ("key 2",)))
    assert change.is_named(["key 1 is gone", "key 2 is gone"])
    assert change.is_named(["Page 3 is never used", "key 2 is gone"])
    assert not change.is_named(["key 1 is gone"])
    assert not change.is_named(["key 12 is gone", "key 21 is gone", "page 33"])


@pytest.mark.thorough
def test_what_was_tried_is_kept_and_gone_on_with_and_the_same_seed_changes_the_same(tmp_path: Path) -> None:
    workload = WORKLOADS["methods, query"]
    trial = workload.run(1, tmp_path, "sqlite3")
    outcomes, again = (try_all(workload, trial, 1) for _ in range(2))
    assert [one.text for one in outcomes] == [one.text for one in again]
    results = kept(tmp_path / "none.json", "sqlite3")
    results.add(workload.name, 1, outcomes)
    write(tmp_path / "kept.md", "", asdict(results))
    assert kept(tmp_path / "kept.json", "sqlite3") == results
    with pytest.raises(ValueError, match="give another --output"):
        kept(tmp_path / "kept.json", "apsw")
    assert results.counts[workload.name][CLEAN]["full"] == [1, 0, 0]
    told = " ".join(markdown(results).split())
    assert "| methods | 0/1" in told
    assert "| methods, query | 0/1" in told
    assert "- restore: a row is written once (classic, methods, keys)" in told


@pytest.mark.thorough
def test_the_page_shows_the_kept_counts() -> None:
    page = (ROOT / "docs" / "proof.md").read_text(encoding="utf-8")
    results = kept(ROOT / "benchmarks/results/mutations.json", "sqlite3")
    for change in (*ROWS, *BYTES, CLEAN):
        tried, caught, _ = results.sum([*results.counts], change, "quick")
        assert re.search(rf"^\| {change} \| .+ \| {caught:,} of {tried:,} \|$", page, re.M), change


@pytest.mark.thorough
@pytest.mark.parametrize("name, driver", [("mutations", "sqlite3"), ("mutations-apsw", "apsw")])
def test_full_verification_caught_everything_as_the_page_says(name: str, driver: str) -> None:
    results = kept(ROOT / f"benchmarks/results/{name}.json", driver)
    for change in (*ROWS, *BYTES):
        tried, caught, _ = results.sum([*results.counts], change, "full")
        assert tried == caught > 0, change
    assert results.sum([*results.counts], CLEAN, "full")[1] == 0


def test_misses_are_kept_in_words() -> None:
    results = Results("sqlite3")
    results.add("kv, 1 file", 4, [Outcome("drop", "quick", "key 3 dropped", False, False, ())])
    assert results.misses == {"drop, quick": ["kv, 1 file, seed 4: key 3 dropped; the verdict tells nothing"]}
    assert "- kv, 1 file, seed 4: key 3 dropped" in markdown(results)
