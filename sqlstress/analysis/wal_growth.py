"""Kinds of growth of a WAL. All kinds have the same symptom, a large WAL file, but different remedies.

A frame is a page in the WAL. A frame is live if it was written since the WAL last started again at its
beginning. A checkpoint copies live frames to the database file.
"""

from __future__ import annotations

from sqlstress.report.results import WalUse

OVERLAP, SNAPSHOT, UNCOPIED, REUSED = "overlap", "snapshot", "uncopied", "reused"
"""Kinds. OVERLAP: checkpoints copied most frames to the database file, but at each moment some process was
reading, so the WAL could not start again at its beginning. SNAPSHOT: a long read transaction keeps
checkpoints from copying later frames. UNCOPIED: no checkpoint copied the frames, and no long read
transaction was seen. REUSED: the file keeps its largest size, but few of its frames are live."""
AUTOCHECKPOINT = 1000
"""Number of frames in the WAL at which SQLite starts a checkpoint by default."""
LARGE_FACTOR = 4
"""Multiple of the frames of automatic checkpoints. If a WAL has more frames, its growth is reported."""
LARGE_FRAMES = LARGE_FACTOR * AUTOCHECKPOINT
"""Largest normal number of frames in a WAL file, for SQLite's default of automatic checkpoints."""
LONG_S = 1.0
"""Duration in seconds. A read transaction of at least this duration is long. So is a time of at least this
duration during which at each moment at least one process read."""
_HALF = 0.5


def growth_in_trial(wal: WalUse, autocheckpoint: int | None = None) -> str | None:
    """Return the kind of growth of a trial's WAL; None if it did not grow.

    `autocheckpoint` is the number of frames at which an automatic checkpoint starts. None means SQLite's
    default, and 0 means that automatic checkpoints are off. If most frames are not in the database file,
    UNCOPIED is returned if automatic checkpoints are off, else SNAPSHOT, because the readers are not known.
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
    """Return the kind of growth of a WAL; None if the WAL did not grow or the figures do not show a kind.

    `file_frames` is the number of frames for which the file has room. `checkpointed` is the number of live
    frames that checkpoints copied to the database file. `longest_read_s` is the duration of the longest
    transaction that read an old snapshot, in seconds. `without_gap_s` is the longest time, in seconds, during
    which at each moment at least one process read. A file of up to `normal_frames` frames did not grow.
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
