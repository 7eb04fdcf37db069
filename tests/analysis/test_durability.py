"""Descriptions of the syncs of a commit, by journal mode, synchronous and system."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.analysis.durability import describe_durability
from sqlstress.report import SyncCost
from sqlstress.report.case import JOURNAL_MODES, SYNCHRONOUS
from tests.analysis.comparison.sides import LINUX, MACOS, MACOS_FULL, WINDOWS
from tests.example_report import assert_golden_texts


def described(journal: str, level: str, sync: SyncCost | None = LINUX, fullfsync: str = "0") -> str:
    return describe_durability({"journal_mode": journal, "synchronous": level, "fullfsync": fullfsync}, sync)


SYNCS: dict[str, tuple[SyncCost | None, str]] = {
    "Linux": (LINUX, "0"),
    "Linux, fullfsync": (LINUX, "1"),
    "Windows": (WINDOWS, "0"),
    "macOS": (MACOS, "0"),
    "macOS, fullfsync": (MACOS_FULL, "1"),
    "macOS, where the cost of another sync is known": (MACOS_FULL, "0"),
    "a disk that is fast": (replace(LINUX, overwrite_p50_ns=540), "0"),
    "nothing known": (None, "0"),
}


def test_durability_follows_from_effective_settings_and_sync_call() -> None:
    modes = [("wal", "full"), ("delete", "full"), ("delete", "extra")]
    descriptions: dict[str, list[str]] = {
        name: [described(journal, level, sync, fullfsync) for journal, level in modes]
        for name, (sync, fullfsync) in SYNCS.items()
    }
    descriptions |= {
        journal: [described(journal, level) for level in SYNCHRONOUS] for journal in JOURNAL_MODES
    }
    assert_golden_texts("durability.txt", descriptions)


@pytest.mark.parametrize(
    "effective", [{}, {"journal_mode": "wal"}, {"journal_mode": "x", "synchronous": "full"}]
)
def test_durability_is_unknown_without_effective_settings(effective: dict[str, str]) -> None:
    assert "unknown" in describe_durability(effective, LINUX)
