"""A worker of the cluster, and how far we have come with it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Member:
    """One worker: first it is asked which machine it is on, then it measures, if nobody does there."""

    address: str
    future: Any
    """What it is doing for us."""
    since: float
    """When that was asked for."""
    name: str
    """What it is called: its address until it has told its host's name."""
    measuring: bool = False


@dataclass(frozen=True, slots=True)
class Identity:
    """What a worker tells of itself."""

    host: str
    machine: str
    sqlstress: str
    python: str

    @classmethod
    def of(cls, text: object) -> Identity:
        """Read an answer. Raises ValueError for anything else."""
        plain = json.loads(text) if isinstance(text, str) and len(text) < 10_000 else None
        if not isinstance(plain, dict):
            raise ValueError("it does not say which host it is")
        told = [plain.get(name) for name in ("host", "machine", "sqlstress", "python")]
        host, machine, sqlstress, python = (str(value)[:200] for value in told)
        return cls(host, machine, sqlstress, python)
