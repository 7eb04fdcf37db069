"""Series: one figure as it went on, for a line of a plot."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Series:
    """The values of one figure over time, or over the cycles of an experiment."""

    name: str
    """What was observed, such as "WAL size"."""
    unit: str
    """Unit of the values: ns, bytes, frames."""
    values: tuple[int, ...]
    """The values, in order."""
    times_ns: tuple[int, ...] = ()
    """When each was taken, or the stretch began that it stands for, in ns after the window opened.

    Empty where they are counted: one a cycle.
    """
    worker: int | None = None
    """Whose figure it is; None: that of the database."""


WAL_FRAMES = "WAL frames"
"""Frames in use in the WALs of all files together."""
CHECKPOINTED_FRAMES = "checkpointed frames"
"""How many of them a checkpoint has copied into the databases."""
WAL_SIZE = "WAL size"
"""Bytes of the WALs of all files together."""
LARGEST_WAL = "largest WAL"
"""Bytes of the largest of them."""
CHECKPOINTS = "checkpoints"
"""Checkpoints that a process beside the workers has made, one for each file."""
BUSY_CHECKPOINTS = "busy checkpoints"
"""Those of them that answered busy: a lock stayed taken."""
STUCK_CHECKPOINTS = "stuck checkpoints in a row"
"""Checkpoints of one file, up to then, that left frames and got no further than the one before."""
CHECKPOINT_TIME = "checkpoint time"
"""Time that went to those checkpoints, in ns."""
LONGEST_CHECKPOINT = "longest checkpoint"
"""Time that the longest of them took, in ns."""
WAL_RESTARTS = "WAL restarts"
"""Looks so far that found the WAL begun anew since the one before."""
