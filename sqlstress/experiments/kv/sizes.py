"""What a key-value load may ask for, and what contradicts itself."""

from __future__ import annotations

from sqlstress.errors import UsageError
from sqlstress.experiments.kv.spec import Load

MOST_DATA = 1 << 40
"""Bytes of all values together, each key's being preloaded."""
MOST_WRITTEN = 1 << 30
"""Bytes that a transaction writes: the worker holds them in memory."""


def check_sizes(load: Load) -> None:
    """Raise UsageError for what can't be."""
    if load.read_ratio + load.update_ratio > 1 + 1e-9:
        raise UsageError(
            "--read-ratio and --update-ratio add up to more than 1. Lower one of them; the rest are replaces."
        )
    if load.batch > load.key_space:
        raise UsageError("--batch is larger than --key-space: a transaction writes distinct keys.")
    sizes = (("key-space", load.key_space, MOST_DATA, "1 TiB"), ("batch", load.batch, MOST_WRITTEN, "1 GiB"))
    for name, count, most, bound in sizes:
        if count * load.value_size > most:
            raise UsageError(f"--{name} times --value-size is more than {bound}: lower one of them.")
