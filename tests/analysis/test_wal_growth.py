"""Kinds of a WAL's growth: made-up figures."""

from __future__ import annotations

import pytest

from sqlstress.analysis.wal_growth import (
    LARGE_FRAMES,
    OVERLAP,
    REUSED,
    SNAPSHOT,
    UNCOPIED,
    wal_growth_kind,
)


@pytest.mark.parametrize(
    ("file_frames", "live", "checkpointed", "read_s", "gap_s", "kind"),
    [
        (LARGE_FRAMES, LARGE_FRAMES, 0, 9.0, 9.0, None),
        (32_000, 32_000, 31_000, 0.05, 9.0, OVERLAP),
        (32_000, 32_000, 31_000, 0.05, 0.4, None),
        (32_000, 32_000, 10, 9.0, 9.0, SNAPSHOT),
        (32_000, 32_000, 10, 0.1, 0.1, UNCOPIED),
        (9143, 744, 744, 5.0, 5.0, REUSED),
    ],
)
def test_wal_growth_kind_follows_from_the_figures(
    file_frames: int, live: int, checkpointed: int, read_s: float, gap_s: float, kind: str | None
) -> None:
    assert kind == wal_growth_kind(
        file_frames=file_frames,
        live_frames=live,
        checkpointed=checkpointed,
        longest_read_s=read_s,
        without_gap_s=gap_s,
    )


def test_any_size_counts_as_growth_if_no_size_is_normal() -> None:
    figures = {"live_frames": 100, "checkpointed": 0, "longest_read_s": 2.0, "without_gap_s": 2.0}
    assert wal_growth_kind(file_frames=100, normal_frames=0, **figures) == SNAPSHOT  # type: ignore[arg-type]
