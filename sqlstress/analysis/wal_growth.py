"""Growth of a WAL: three kinds with different cures."""

from __future__ import annotations

from sqlstress.report.results import WalUse

READERS, SNAPSHOT, OFF, PAST = "readers", "snapshot", "off", "past"
"""Kinds of growth. READERS: all frames are checkpointed, but readers that overlap never let the WAL start
again. SNAPSHOT: a reader keeps a snapshot, so the frames after it cannot be checkpointed. OFF: automatic
checkpoints are off. PAST: the WAL has started again since, and its file keeps its size."""
AUTOCHECKPOINT = 1000
"""Frames at which SQLite checkpoints by default."""
LARGE_FACTOR = 4
"""Factor by which a WAL exceeds the automatic checkpoint from which its growth is reported."""
_HALF = 0.5


def growth_kind(wal: WalUse, autocheckpoint: int | None = None) -> str | None:
    """Return the kind of a WAL's growth; None if it did not grow.

    `autocheckpoint` is the number of frames of automatic checkpoints: None is SQLite's default, 0 means off.
    """
    if wal.most_frames <= LARGE_FACTOR * (autocheckpoint or AUTOCHECKPOINT):
        return None
    if wal.frames < _HALF * wal.most_frames:
        return PAST
    if wal.most_checkpointed >= _HALF * wal.most_frames:
        return READERS
    return OFF if autocheckpoint == 0 else SNAPSHOT
