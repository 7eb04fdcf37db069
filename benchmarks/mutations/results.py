"""What has been tried, counted as it is kept in a file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.mutations.experiment import Outcome
from sqlstress.report import write_atomically

MISSES = 40
"""Changes of a kind that are kept in words, of those that were not caught or not named."""


@dataclass(slots=True)
class Results:
    """What has been tried with one driver."""

    driver: str
    created: str = ""
    command: tuple[str, ...] = ()
    revisions: tuple[str, ...] = ()
    """Of the checkouts that did it, the first one first."""
    surroundings: tuple[str, ...] = ()
    """Host and library, a line each."""
    seeds: dict[str, list[int]] = field(default_factory=dict)
    """Workload → seeds done."""
    counts: dict[str, dict[str, dict[str, list[int]]]] = field(default_factory=dict)
    """Workload → change → level → how often it was tried, failed the verdict, and was named."""
    misses: dict[str, list[str]] = field(default_factory=dict)
    """Change and level → what was not caught, or not named, in words."""

    def add(self, workload: str, seed: int, outcomes: Iterable[Outcome]) -> None:
        """Count what was tried with one seed."""
        self.seeds.setdefault(workload, []).append(seed)
        for one in outcomes:
            by_level = self.counts.setdefault(workload, {}).setdefault(one.change, {})
            counts = by_level.setdefault(one.level, [0, 0, 0])
            for place, more in enumerate((True, one.failed, one.named)):
                counts[place] += more
            if one.is_miss:
                self._keep(workload, seed, one)

    def _keep(self, workload: str, seed: int, one: Outcome) -> None:
        kept = self.misses.setdefault(f"{one.change}, {one.level}", [])
        if len(kept) < MISSES:
            told = "; ".join(text[:200] for text in one.told) or "nothing"
            kept.append(f"{workload}, seed {seed}: {one.text}; the verdict tells {told}")

    def save(self, path: Path) -> None:
        """Write everything."""
        write_atomically(path, json.dumps(asdict(self), indent=1) + "\n")


def kept(path: Path, driver: str) -> Results:
    """Return what a file holds, or nothing yet. Raises ValueError when another driver was tried."""
    if not path.exists():
        return Results(driver)
    plain: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for field_of_tuple in ("command", "revisions", "surroundings"):
        plain[field_of_tuple] = tuple(plain[field_of_tuple])
    found = Results(**plain)
    if found.driver != driver:
        raise ValueError(f"{path} holds what was tried with {found.driver}: give another --output")
    return found
