"""Kinds of growth of a WAL, which need different remedies.

A frame is a page in the WAL. A frame is live if it was written since the WAL last restarted at its beginning.
A checkpoint copies live frames to the database file.
"""

from __future__ import annotations

from sqlstress.report.results import WalUse

OVERLAP, SNAPSHOT, UNCOPIED, REUSED = "overlap", "snapshot", "uncopied", "reused"
"""Kinds of growth of a WAL, by cause.

OVERLAP: frames were copied, but some process was always reading, so the WAL could not restart. SNAPSHOT: a
long read transaction keeps checkpoints from copying frames written since it began. UNCOPIED: no checkpoint
copied the frames. REUSED: the WAL restarted and has few live frames, but the file keeps its largest size.
"""
AUTOCHECKPOINT = 1000
"""Number of frames in the WAL at which SQLite starts a checkpoint by default."""
LARGE_FACTOR = 4
"""A WAL has grown if its frames exceed this multiple of the number that starts a checkpoint."""
LARGE_FRAMES = LARGE_FACTOR * AUTOCHECKPOINT
"""Largest normal number of frames in a WAL file with SQLite's default checkpoints."""
LONG_S = 1.0
"""Minimum duration, in seconds, of a long read, or of a long series of reads without a gap."""
_HALF = 0.5


def growth_in_trial(wal: WalUse, autocheckpoint: int | None = None) -> str | None:
    """Return the kind of growth of a trial's WAL; None if it did not grow.

    `autocheckpoint` is the number of frames at which SQLite makes a checkpoint by itself: None means the
    default, 0 never.
    """
    return wal_growth_kind(
        file_frames=wal.most_frames,
        live_frames=wal.frames,
        copied=wal.most_checkpointed / max(1, wal.most_frames),
        normal_frames=LARGE_FACTOR * (autocheckpoint or AUTOCHECKPOINT),
        is_automatic=autocheckpoint != 0,
    )


def wal_growth_kind(
    *,
    file_frames: float,
    live_frames: int,
    copied: float,
    longest_read_s: float | None = None,
    without_gap_s: float | None = None,
    normal_frames: int = LARGE_FRAMES,
    is_automatic: bool = True,
) -> str | None:
    """Return the kind of growth of a WAL; None if it did not grow, or the kind is unclear.

    - file_frames: number of frames that fit in the file. A file of up to `normal_frames` did not grow.
    - live_frames: number of frames since the WAL last restarted
    - copied: share of the frames that a checkpoint has copied to the database file
    - longest_read_s: duration of the longest read transaction on an old snapshot; None if unknown
    - without_gap_s: longest time during which some process was always reading; None if unknown
    - is_automatic: whether SQLite makes checkpoints by itself
    """
    if file_frames <= normal_frames:
        return None
    if live_frames < _HALF * file_frames:
        return REUSED
    if longest_read_s is None or without_gap_s is None:
        return OVERLAP if copied >= _HALF else SNAPSHOT if is_automatic else UNCOPIED
    if longest_read_s >= LONG_S:
        return SNAPSHOT
    if copied < _HALF:
        return UNCOPIED
    return OVERLAP if without_gap_s >= LONG_S else None
