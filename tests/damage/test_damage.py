"""Every checker reports changes of rows and of bytes in the files that real processes have written."""

from pathlib import Path

import pytest

from tests.damage.catalogue import BYTES, CLEAN, ROWS, WORKLOADS
from tests.damage.flips import TRUNK, sites, sites_of
from tests.damage.trial import Change
from tests.damage.tries import LEVELS, try_all
from tests.rows import mostly_thorough

KEYS = ("id-rowid, uuid7", "id-norowid, ulid", "pair-norowid, uuid4", "no-key, uuid4", "pair-rowid, int")
TRIED = [name for name in WORKLOADS if not name.startswith("keys, ") or name.removeprefix("keys, ") in KEYS]
"""Workloads of the tests: each schema and each type of id occurs."""
QUICK = ("kv, 1 file", "keys, id-rowid, uuid7", "cycles, a statement each", "crash, 1 file")
"""One workload for each kind of table."""


def test_impossible_changes_have_a_reason() -> None:
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


@pytest.mark.parametrize("name", mostly_thorough(TRIED, QUICK))
def test_verdict_accepts_unchanged_files_and_names_each_change(name: str, tmp_path: Path) -> None:
    workload = WORKLOADS[name]
    trial = workload.run(1, tmp_path, "sqlite3")
    outcomes = try_all(workload, trial, 1)
    assert not any(outcomes[CLEAN, level].failed for level in LEVELS)
    for change in (change for change in (*ROWS, *BYTES) if not isinstance(workload.changes[change], str)):
        quick, full = (outcomes[change, level] for level in LEVELS)
        if change in ROWS:
            assert quick.named and full.named, (quick, full)
            continue
        assert full.failed, full
        # Only integrity_check compares indices with their tables, and ids that only the worker knew.
        if change != "index byte" and not (change == "row byte" and name.startswith("keys, id-")):
            assert quick.failed, quick
    trial.restore()
    for bucket, path in enumerate(trial.paths):
        parts = sites_of(trial, bucket)
        offsets = [site.offset for site in parts]
        assert len(offsets) == len(set(offsets)), "a byte belongs to one part at most"
        assert max(offsets) < path.stat().st_size
        assert (TRUNK in {site.part for site in parts}) == name.startswith("cycles")


def test_file_without_a_header_has_no_sites() -> None:
    with pytest.raises(Exception, match="header"):
        list(sites(b"no database", (), ()))


def test_change_is_named_only_if_all_its_names_appear() -> None:
    change = Change("two keys", (("key 1", "page 3"), ("key 2",)))
    assert change.is_named(["key 1 is gone", "key 2 is gone"])
    assert change.is_named(["Page 3 is never used", "key 2 is gone"])
    assert not change.is_named(["key 1 is gone"])
    assert not change.is_named(["key 12 is gone", "key 21 is gone", "page 33"])
