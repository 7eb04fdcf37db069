"""Power cuts: a case for each configuration, of which a run is recorded and cut at many points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from sqlstress.errors import UsageError
from sqlstress.experiment import Behaviour, CommandLine, Experiment, StudyOf, Words
from sqlstress.options.option import Nothing, chosen, option, options_of
from sqlstress.options.parsing import choice, switch, whole
from sqlstress.plan import Request, check_locking
from sqlstress.report.case import JOURNAL_MODES, SYNCHRONOUS, Case, common, layout, otherwise
from sqlstress.report.power_failure import CORRUPT, GOOD, KINDS, LOST, TORN

POWER = "Power cuts"
MOST_IMAGES = 1_000_000


@dataclass(frozen=True, slots=True)
class Extra:
    """Options that stand in no case."""

    power: bool = option(
        switch,
        False,
        POWER,
        "Simulate power cuts instead of kills: check possible images of the disk. Needs apsw.",
        flag=True,
    )
    matrix: bool = option(
        switch,
        False,
        POWER,
        "Simulate power cuts for every journal mode and every synchronous level.",
        flag=True,
    )
    images: int = option(whole(100, MOST_IMAGES), 2000, POWER, "Disk images to check per configuration.")
    disk: str = option(
        choice("powersafe", "spoiling"),
        "powersafe",
        POWER,
        "Simulated disk: powersafe, or spoiling (a sector being written at the cut may hold anything).",
        metavar="KIND",
    )
    psow: bool = option(
        switch,
        "on",
        POWER,
        "Whether SQLite assumes a powersafe disk (psow). It does by default.",
        metavar="on|off",
    )


MOST_FILES = 100
"""Every image has all of them."""
MOST_CONNECTIONS = 200
"""Of one process, to all files together."""
AUTOCHECKPOINT = 20
"""Frames after which a checkpoint begins, unless told otherwise: so that power is cut in many of them."""

PowerRequest = Request[Nothing, Extra]


def cases(request: PowerRequest) -> Iterator[Case]:
    """Yield the cases. Raises UsageError when options don't fit."""
    _check(request)
    settings = request.with_settings(busy_timeout_ms=0)
    case = replace(request.case, driver="apsw", verify="full", settings=settings)
    if not request.extra.matrix:
        yield case
        return
    for mode in JOURNAL_MODES:
        for level in SYNCHRONOUS:
            yield replace(case, settings=replace(settings, journal_mode=mode, synchronous=level))


def _check(request: PowerRequest) -> None:
    for name in ("journal-mode", "synchronous"):
        if request.extra.matrix and name in request.given:
            raise UsageError(f"--matrix tries every --{name}. Leave it out, or use --power.")
    if "driver" in request.given and request.case.driver != "apsw":
        raise UsageError("power cuts need --driver apsw: no other driver can simulate the disk.")
    buckets = request.case.buckets
    if buckets > MOST_FILES or buckets * request.case.concurrency > MOST_CONNECTIONS:
        raise UsageError(
            f"power cuts support at most {MOST_FILES} buckets and {MOST_CONNECTIONS} connections in all. "
            "Lower --buckets or --concurrency."
        )
    check_locking(request, "connection")


POWER_LOSS = Experiment(
    name="power-loss",
    spec=Nothing,
    command=CommandLine(
        name="crash",
        chosen_by=("power", "matrix"),
        noun="power cuts",
    ),
    options=(
        otherwise("concurrency", parse=whole(1, 256), default=3, varies=False),
        otherwise("buckets", parse=whole(1, 1000), default=1, varies=False),
        *chosen(options_of(Extra)),
        *common("journal-mode", "synchronous", "fullfsync"),
        otherwise("wal-autocheckpoint", default=AUTOCHECKPOINT),
        *common("page-size", "cache-size", "pragma"),
        otherwise("driver", parse=choice("sqlite3", "apsw"), group=POWER),
        *common("seed"),
    ),
    extra=Extra,
    cases=cases,
    study=StudyOf(
        opens="sqlstress.experiments.power_loss.study:study_of",
        result="sqlstress.experiments.power_loss.experiment:PowerLoss",
        result_key=("crash", "power"),
        called="a crash test",
    ),
    shown="sqlstress.experiments.power_loss.show:PowerLossShown",
    words=Words(work_of=layout),
    behaviour=Behaviour(sweeps=True),
)


# What a test of power cuts adds to a report: images of the disk as it could be, and what was in them.


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
