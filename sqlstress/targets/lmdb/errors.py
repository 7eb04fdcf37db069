"""What LMDB raised, in words, and what to do about it."""

from __future__ import annotations

from sqlstress.errors import plainly, said

_ADVICE = {
    "MapFullError": "lower --key-space, --value-size or --batch, or spread it over more --buckets",
    "ReadersFullError": "another program reads it: end that, or lower --concurrency",
    "DiskError": "free some space there, or choose another --dir",
    "MemoryError": "the memory map is too large for this system: lower --key-space or --value-size",
}


def foresees(error: Exception) -> bool:
    """Return whether an error is LMDB's own."""
    return type(error).__module__.partition(".")[0] == "lmdb"


def explained(error: Exception) -> str:
    """Return what went wrong, and what to do about it."""
    if not foresees(error):
        return plainly(error)
    advice = _ADVICE.get(type(error).__name__)
    return f"LMDB: {said(error)}" + (f" ({advice})" if advice else "")
