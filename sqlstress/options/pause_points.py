"""Where a process can pause inside SQLite: the names of the calls of its VFS, for options and for C."""

from __future__ import annotations

POINTS = (
    "open",
    "read",
    "write",
    "truncate",
    "sync",
    "size",
    "lock",
    "unlock",
    "control",
    "shm-map",
    "shm-lock",
    "shm-unlock",
    "barrier",
    "fetch",
    "delete",
    "write-lock",
)
"""Where a pause may be, in the order of native/pauses.h; each has two sides, before the call and after it."""
