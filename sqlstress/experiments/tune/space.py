"""What may be searched without changing what is promised, and what each choice of it means.

Never among it: the journal mode, synchronous, and how much a transaction writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlstress.errors import UsageError
from sqlstress.report.case import Case, Settings
from sqlstress.statistics.design import Row

Options = Mapping[str, str]
"""Unparsed values by the names of options."""
MOST_BUCKETS = 6
"""Numbers of files among which is chosen: each is tried with everything else."""
_PRAGMAS = ("page_size", "wal_autocheckpoint", "cache_size", "mmap_size")
"""Those that are written, in the order in which SQLite takes them."""


@dataclass(frozen=True, slots=True)
class Factor:
    """One thing that is varied."""

    name: str
    levels: tuple[tuple[str, Options], ...]
    """What each level is called, and its options; the first one is what the load has."""


def _values(name: str, *values: str) -> Factor:
    return Factor(name, (("", {}), *((value, {name: value}) for value in values)))


CHECKPOINTS = Factor(
    "checkpoints",
    (
        ("", {}),
        ("4000", {"wal-autocheckpoint": "4000"}),
        ("10000", {"wal-autocheckpoint": "10000"}),
        ("restart", {"checkpointer": "restart"}),
    ),
)
"""After how many frames a worker checkpoints, or that a process of its own does."""
FACTORS = (
    CHECKPOINTS,
    _values("page-size", "1024", "8192"),
    _values("cache-size", "-65536"),
    _values("mmap-size", "268435456"),
    _values("busy", "fair"),
)


def factors_of(given: Mapping[str, Any], case: Case, buckets: Sequence[int]) -> tuple[Factor, ...]:
    """Return what is varied for a load: what was given is kept, and what has no meaning there left alone.

    `buckets` are the numbers of files to choose from, the first of which the load has. Raises UsageError.
    """
    if len(buckets) > MOST_BUCKETS:
        raise UsageError(f"--buckets names {len(buckets)} numbers: choose among {MOST_BUCKETS} at most.")
    found = [factor for factor in FACTORS if not _is_settled(factor, given, case)]
    if len(buckets) > 1:
        files = ((str(count), {"buckets": str(count)}) for count in buckets[1:])
        found.append(Factor("buckets", (("", {}), *files)))
    if not found:
        raise UsageError("nothing is left to be searched: every option of it was given. Leave some out.")
    return tuple(found)


def _is_settled(factor: Factor, given: Mapping[str, Any], case: Case) -> bool:
    names = {name for _, options in factor.levels for name in options}
    if names & given.keys():
        return True
    if factor is CHECKPOINTS:
        return case.settings.journal_mode != "wal"
    # Whoever is alone waits for nobody.
    return factor.name == "busy" and case.concurrency == 1


@dataclass(frozen=True)
class Space:
    """The grid of all settings, and the case of each."""

    factors: tuple[Factor, ...]
    plan: Callable[[Options], Case]
    """Returns the case of the load with further options."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many levels each factor has."""
        return tuple(len(factor.levels) for factor in self.factors)

    def options(self, row: Row) -> dict[str, str]:
        """Return the options of a row, beside those of the load."""
        chosen = (factor.levels[level][1] for factor, level in zip(self.factors, row, strict=True))
        return {name: value for options in chosen for name, value in options.items()}

    def words(self, row: Row) -> tuple[str, ...]:
        """Return the same as they are written on the command line."""
        return tuple(word for name, value in self.options(row).items() for word in (f"--{name}", value))

    def values(self, row: Row) -> tuple[str, ...]:
        """Return what each factor's level is called; "" for that of the load."""
        return tuple(factor.levels[level][0] for factor, level in zip(self.factors, row, strict=True))

    def case(self, row: Row) -> Case:
        """Return the case of a row."""
        return self.plan(self.options(row))


def pragmas(settings: Settings, base: Settings) -> tuple[str, ...]:
    """Return the PRAGMAs in which settings differ from others: "PRAGMA page_size = 1024"."""
    changed = [name for name in _PRAGMAS if getattr(settings, name) != getattr(base, name)]
    return tuple(f"PRAGMA {name} = {getattr(settings, name)}" for name in changed)
