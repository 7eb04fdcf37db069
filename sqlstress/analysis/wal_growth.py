"""Kinds of a WAL's growth. They have the same symptom, and different remedies."""

from __future__ import annotations

from sqlstress.report.results import WalUse

OVERLAP, SNAPSHOT, UNCOPIED, REUSED = "overlap", "snapshot", "uncopied", "reused"
"""Kinds. OVERLAP: most frames are in the database file, but readers that overlap never let the WAL start
again. SNAPSHOT: a long reader keeps frames out of the database file. UNCOPIED: no checkpoint copied the
frames, and no long reader was seen. REUSED: the file keeps its largest size; few of its frames are live."""
AUTOCHECKPOINT = 1000
"""Number of frames at which SQLite checkpoints by default."""
LARGE_FACTOR = 4
"""Factor by which a WAL exceeds the automatic checkpoint from which its growth is reported."""
LARGE_FRAMES = LARGE_FACTOR * AUTOCHECKPOINT
"""Number of frames in the WAL file up to which its size is normal."""
LONG_S = 1.0
"""Minimum duration of a long read, and of a time without a gap between readers, in seconds."""
_HALF = 0.5


def growth_in_trial(wal: WalUse, autocheckpoint: int | None = None) -> str | None:
    """Return the kind of growth of a trial's WAL; None if it did not grow.

    `autocheckpoint` is the number of frames of automatic checkpoints: None is SQLite's default, 0 means off.
    The readers are not known, so UNCOPIED is returned only if automatic checkpoints are off.
    """
    if wal.most_frames <= LARGE_FACTOR * (autocheckpoint or AUTOCHECKPOINT):
        return None
    if wal.frames < _HALF * wal.most_frames:
        return REUSED
    if wal.most_checkpointed >= _HALF * wal.most_frames:
        return OVERLAP
    return UNCOPIED if autocheckpoint == 0 else SNAPSHOT


def wal_growth_kind(
    *,
    file_frames: float,
    live_frames: int,
    checkpointed: int,
    longest_read_s: float,
    without_gap_s: float,
    normal_frames: int = LARGE_FRAMES,
) -> str | None:
    """Return the kind of growth of a WAL, or None if it did not grow or the figures do not show a kind.

    `file_frames` is the number of frames that the file has room for. `checkpointed` counts the live frames
    that are in the database file. `longest_read_s` is the longest transaction that kept an old snapshot, and
    `without_gap_s` the longest time in which always some process read. A file of up to `normal_frames` frames
    did not grow.
    """
    if file_frames <= normal_frames:
        return None
    if live_frames < _HALF * file_frames:
        return REUSED
    if longest_read_s >= LONG_S:
        return SNAPSHOT
    if checkpointed < _HALF * live_frames:
        return UNCOPIED
    return OVERLAP if without_gap_s >= LONG_S else None
