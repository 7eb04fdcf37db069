"""What a commit waits for, by journal mode, synchronous and system."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.analysis.durability import describe_durability
from sqlstress.report import SyncCost
from sqlstress.report.case import JOURNAL_MODES, SYNCHRONOUS
from tests.analysis.comparison.sides import LINUX, MACOS, WINDOWS

MACOS_FULL = replace(LINUX, primitive="F_FULLFSYNC", overwrite_p50_ns=4_210_000)
ONE = "WAL, synchronous=FULL: each commit waits for one"


def described(journal: str, level: str, sync: SyncCost | None = LINUX, fullfsync: str = "0") -> str:
    return describe_durability({"journal_mode": journal, "synchronous": level, "fullfsync": fullfsync}, sync)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (described("wal", "full"), f"{ONE} fdatasync (p50 0.081 ms here)."),
        (described("wal", "full", LINUX, "1"), f"{ONE} fdatasync (p50 0.081 ms here)."),
        (
            described("wal", "normal"),
            "WAL, synchronous=NORMAL: no commit waits for a sync; a power failure can lose what was "
            "committed since the last checkpoint.",
        ),
        (
            described("memory", "full"),
            "MEMORY journal, synchronous=FULL: each commit waits for one fdatasync (p50 0.081 ms here); a "
            "crash can corrupt the database.",
        ),
        (
            described("wal", "full", MACOS),
            f"{ONE} fsync (p50 0.081 ms here); fsync leaves it in the drive's cache.",
        ),
        (described("wal", "full", MACOS_FULL, "1"), f"{ONE} F_FULLFSYNC (p50 4.21 ms here)."),
        # The cost of another case's sync is not claimed, and a call that is not known not guessed.
        (described("wal", "full", MACOS_FULL), f"{ONE} fsync; fsync leaves it in the drive's cache."),
        (described("wal", "full", None), f"{ONE[:-3]}a sync, by an unknown call."),
        (
            described("wal", "full", replace(LINUX, overwrite_p50_ns=540)),
            f"{ONE} fdatasync (p50 under 0.001 ms here).",
        ),
    ],
)
def test_a_commit_is_described_by_what_was_read_back_and_timed(said: str, expected: str) -> None:
    assert said == expected


@pytest.mark.parametrize(
    ("journal", "counts"),
    [("delete", (3, 4, 5)), ("truncate", (3, 5, 5)), ("persist", (4, 5, 5))],
)
def test_a_rollback_journal_waits_for_several_and_folders_are_not_synced_everywhere(
    journal: str, counts: tuple[int, ...]
) -> None:
    for level, count in zip(("normal", "full", "extra"), counts, strict=True):
        assert f"waits for {count} fdatasync calls (p50 0.081 ms each here)" in described(journal, level)
    for sync, fullfsync in ((WINDOWS, "0"), (MACOS_FULL, "1")):
        assert f"waits for 3 {sync.primitive} calls" in described("delete", "full", sync, fullfsync)
        assert f"waits for 3 {sync.primitive} calls" in described("delete", "extra", sync, fullfsync)


@pytest.mark.parametrize(
    ("journal", "level", "undone", "corrupt"),
    [
        ("delete", "normal", "undo the last commit", "rarely corrupt the database."),
        ("delete", "full", "undo the last commit", ""),
        ("delete", "extra", "", ""),
        ("truncate", "normal", "undo the last commit, or a part of it: a damaged file.", ""),
        ("truncate", "full", "", ""),
        ("persist", "normal", "", "rarely corrupt the database."),
        ("wal", "full", "", ""),
    ],
)
def test_what_can_be_lost_all_the_same_is_said(journal: str, level: str, undone: str, corrupt: str) -> None:
    said = described(journal, level)
    assert (undone in said) and ("undo" in said) == bool(undone)
    assert (corrupt in said) and ("corrupt" in said) == bool(corrupt)


@pytest.mark.parametrize(
    "effective", [{}, {"journal_mode": "wal"}, {"journal_mode": "x", "synchronous": "full"}]
)
def test_settings_that_were_not_read_back_are_not_guessed(effective: dict[str, str]) -> None:
    assert "unknown" in describe_durability(effective, LINUX)


@pytest.mark.parametrize("journal", JOURNAL_MODES)
@pytest.mark.parametrize("level", SYNCHRONOUS)
def test_every_combination_has_its_sentence(journal: str, level: str) -> None:
    said = described(journal, level)
    assert "not known" not in said
    assert said.endswith(".") and journal.upper() in said and f"synchronous={level.upper()}" in said
    if level == "off":
        assert "no commit waits for a sync" in said and "p50" not in said
        assert "a power failure can lose commits or corrupt the database" in said
    assert ("a crash can corrupt" in said) == (journal in ("memory", "off"))
