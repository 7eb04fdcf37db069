"""What a test of power cuts adds to a report: images of the disk as it could be, and what was in them."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlstress.report.case import Case
from sqlstress.report.power_failure import CORRUPT, GOOD, KINDS, LOST, TORN


@dataclass(frozen=True, slots=True)
class PowerCuts:
    """One configuration: power is cut at many points of one run, and each cut leaves several images."""

    case: Case
    """The files and their settings; its concurrency is the number of connections to each file."""
    transactions: int = 0
    """Transactions of the run, each acknowledged at some point of it."""
    operations: int = 0
    """What the run asked of the disk: writes, truncations, creations, deletions, syncs."""
    syncs: int = 0
    """Syncs among them, of files and of their folder."""
    images: int = 0
    """Images of the disk, each opened by SQLite and checked."""
    good: int = 0
    """Images that hold every acknowledged transaction, and the one under way as a whole or not at all."""
    lost: int = 0
    """Images that hold what the files held at an earlier moment: acknowledged transactions are gone."""
    torn: int = 0
    """Images of sound files that hold what they held at no moment: parts of transactions."""
    corrupt: int = 0
    """Images that SQLite can't read, or of whose structure integrity_check complains."""
    most_lost: int = 0
    """The largest number of acknowledged transactions that an image lost."""
    counterexamples: tuple[str, ...] = ()
    """The first image of each kind that is not good: where power was cut, what was kept, what is wrong."""
    effective: dict[str, str] = field(default_factory=dict)
    """Every setting as SQLite answered it after the first write."""

    @property
    def worst(self) -> str:
        """The worst kind that was met; of several files in an image the worst one counts."""
        met = {GOOD: self.good, LOST: self.lost, TORN: self.torn, CORRUPT: self.corrupt}
        return next((kind for kind in reversed(KINDS) if met[kind]), GOOD)


@dataclass(frozen=True, slots=True)
class PowerLoss:
    """Power cuts, in one configuration or more."""

    images: int
    """Images that were asked for of each configuration."""
    planned: int
    """Number of configurations that were asked for."""
    matrix: bool = False
    """Whether they are all journal modes with all levels of synchronous."""
    spoils: bool = False
    """Whether a sector that was being written at the cut may hold anything; else it is the old or the new."""
    told_powersafe: bool = True
    """Whether SQLite was told that bytes beside those written stay as they are (psow)."""
    control: PowerCuts | None = None
    """A configuration that must fail, tried first: else nothing can be said of the others."""
    configurations: tuple[PowerCuts, ...] = ()
    """Those that were asked for."""
    seconds: float = 0.0
    """How long all of it took."""
    error: str | None = None
    """Why it ended early; None when it did not, or was interrupted."""

    @property
    def is_proved(self) -> bool:
        """Whether the control failed in every way there is: lost, torn and corrupt images were seen."""
        return self.control is not None and all((self.control.lost, self.control.torn, self.control.corrupt))

    @property
    def checked(self) -> int:
        """Images of the configurations that were asked for."""
        return sum(cuts.images for cuts in self.configurations)
