"""Kinds of growth of a WAL. All kinds have the same symptom, a large WAL file, but different remedies.

A frame is a page in the WAL. A frame is live if it was written since the WAL last started again at its
beginning. A checkpoint copies live frames to the database file.
"""

from __future__ import annotations

from sqlstress.report.results import WalUse

OVERLAP, SNAPSHOT, UNCOPIED, REUSED = "overlap", "snapshot", "uncopied", "reused"
"""Kinds of growth. OVERLAP: frames were copied, but some process was always reading, so the WAL could not
start again. SNAPSHOT: a long read transaction keeps checkpoints from copying later frames. UNCOPIED: no
checkpoint copied the frames. REUSED: the file keeps its largest size, but few of its frames are live."""
AUTOCHECKPOINT = 1000
"""Number of frames in the WAL at which SQLite starts a checkpoint by default."""
LARGE_FACTOR = 4
"""Multiple of the frames of automatic checkpoints above which the growth of a WAL is reported."""
LARGE_FRAMES = LARGE_FACTOR * AUTOCHECKPOINT
"""Largest normal number of frames in a WAL file, for SQLite's default of automatic checkpoints."""
LONG_S = 1.0
"""Duration in seconds from which a read transaction is long, or a time in which some process always reads."""
_HALF = 0.5


def growth_in_trial(wal: WalUse, autocheckpoint: int | None = None) -> str | None:
    """Return the kind of growth of a trial's WAL; None if it did not grow.

    `autocheckpoint` is the number of frames at which SQLite makes a checkpoint: None for its default, 0 for
    never.
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
    """Return the kind of growth of a WAL; None if it did not grow, or the figures show no kind.

    `file_frames` is the number of frames for which the file has room. A file of up to `normal_frames` did not
    grow. `checkpointed` is the number of live frames that checkpoints copied. `longest_read_s` is the
    duration of the longest read of an old snapshot, and `without_gap_s` the longest time in which some
    process always read.
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
