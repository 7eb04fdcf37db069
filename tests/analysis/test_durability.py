"""What a commit waits for, by journal mode, synchronous and system."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.analysis.durability import describe_durability
from sqlstress.report import SyncCost
from sqlstress.report.case import JOURNAL_MODES, SYNCHRONOUS

LINUX = SyncCost("fdatasync", 96_000, 410_000, 81_000, 350_000, 200)
WINDOWS = replace(LINUX, primitive="FlushFileBuffers")
MACOS = replace(LINUX, primitive="fsync")
MACOS_FULL = replace(LINUX, primitive="F_FULLFSYNC", overwrite_p50_ns=4_210_000)


def told(journal: str, level: str, sync: SyncCost = LINUX, fullfsync: str = "0") -> str:
    return describe_durability({"journal_mode": journal, "synchronous": level, "fullfsync": fullfsync}, sync)


def test_a_durable_commit_waits_for_one_sync() -> None:
    expected = "WAL, synchronous=FULL: each commit waits for one fdatasync (p50 0.081 ms here)."
    assert told("wal", "full") == expected
    assert told("wal", "extra") == expected.replace("FULL", "EXTRA")


def test_wal_and_normal_wait_for_no_sync() -> None:
    assert told("wal", "normal") == (
        "WAL, synchronous=NORMAL: no commit waits for a sync; "
        "a power failure can lose what was committed since the last checkpoint."
    )


@pytest.mark.parametrize(
    ("journal", "counts"),
    [("delete", (3, 4, 5)), ("truncate", (3, 5, 5)), ("persist", (4, 5, 5))],
)
def test_a_rollback_journal_waits_for_several(journal: str, counts: tuple[int, ...]) -> None:
    for level, count in zip(("normal", "full", "extra"), counts, strict=True):
        assert f"waits for {count} fdatasync calls (p50 0.081 ms each here)" in told(journal, level)


@pytest.mark.parametrize(
    ("journal", "level", "undone"),
    [
        ("delete", "normal", True),
        ("delete", "full", True),
        ("delete", "extra", False),
        ("truncate", "normal", True),
        ("truncate", "full", False),
        ("persist", "normal", False),
        ("wal", "full", False),
    ],
)
def test_a_commit_that_can_be_undone_is_said(journal: str, level: str, undone: bool) -> None:
    assert ("undo the last commit" in told(journal, level)) is undone


@pytest.mark.parametrize("journal", ["delete", "persist"])
def test_a_journal_that_is_synced_once_with_its_header_can_rarely_corrupt(journal: str) -> None:
    assert told(journal, "normal").endswith("rarely corrupt the database.")
    assert "corrupt" not in told(journal, "full")


def test_a_truncation_that_is_not_synced_can_undo_a_part_of_a_commit() -> None:
    assert told("truncate", "normal").endswith("undo the last commit, or a part of it: a damaged file.")


@pytest.mark.parametrize("journal", ["memory", "off"])
def test_a_journal_that_is_not_on_disk_is_said(journal: str) -> None:
    assert told(journal, "full") == (
        f"{journal.upper()} journal, synchronous=FULL: each commit waits for one fdatasync "
        "(p50 0.081 ms here); a crash can corrupt the database."
    )
    assert "a crash can corrupt" in told(journal, "off")


@pytest.mark.parametrize("journal", JOURNAL_MODES)
def test_synchronous_off_waits_for_nothing_and_may_corrupt(journal: str) -> None:
    said = told(journal, "off")
    assert "no commit waits for a sync" in said and "p50" not in said
    assert "a power failure can lose commits or corrupt the database" in said


def test_folders_are_not_synced_on_windows() -> None:
    assert "waits for 3 FlushFileBuffers calls" in told("delete", "full", WINDOWS)
    assert "waits for 3 FlushFileBuffers calls" in told("delete", "extra", WINDOWS)
    assert "waits for one FlushFileBuffers (" in told("wal", "full", WINDOWS)


def test_a_plain_fsync_on_macos_is_said_to_stop_at_the_drives_cache() -> None:
    assert told("wal", "full", MACOS) == (
        "WAL, synchronous=FULL: each commit waits for one fsync (p50 0.081 ms here); "
        "fsync leaves it in the drive's cache."
    )
    assert "cache" not in told("wal", "normal", MACOS)


def test_fullfsync_on_macos_is_timed_as_such() -> None:
    assert told("wal", "full", MACOS_FULL, "1") == (
        "WAL, synchronous=FULL: each commit waits for one F_FULLFSYNC (p50 4.21 ms here)."
    )
    assert "waits for 3 F_FULLFSYNC calls" in told("delete", "full", MACOS_FULL, "1")


def test_the_cost_of_another_cases_sync_is_not_claimed() -> None:
    assert told("wal", "full", MACOS_FULL, "0") == (
        "WAL, synchronous=FULL: each commit waits for one fsync; fsync leaves it in the drive's cache."
    )


def test_fullfsync_changes_nothing_on_linux_though_it_reads_back_1() -> None:
    assert told("wal", "full", LINUX, "1") == told("wal", "full", LINUX, "0")


def test_a_sync_below_a_microsecond_is_not_shown_as_nothing() -> None:
    assert "(p50 under 0.001 ms here)" in told("wal", "full", replace(LINUX, overwrite_p50_ns=540))


@pytest.mark.parametrize(
    "effective", [{}, {"journal_mode": "wal"}, {"journal_mode": "x", "synchronous": "full"}]
)
def test_settings_that_were_not_read_back_are_not_guessed(effective: dict[str, str]) -> None:
    assert "not known" in describe_durability(effective, LINUX)


def test_a_call_that_is_not_known_is_not_guessed() -> None:
    effective = {"journal_mode": "wal", "synchronous": "full"}
    assert describe_durability(effective, None) == (
        "WAL, synchronous=FULL: each commit waits for a sync, by a call that is not known."
    )
    assert "no commit waits for a sync" in describe_durability({**effective, "synchronous": "normal"}, None)


@pytest.mark.parametrize("journal", JOURNAL_MODES)
@pytest.mark.parametrize("level", SYNCHRONOUS)
def test_every_combination_has_its_sentence(journal: str, level: str) -> None:
    said = told(journal, level)
    assert "not known" not in said
    assert said.endswith(".") and journal.upper() in said and f"synchronous={level.upper()}" in said
