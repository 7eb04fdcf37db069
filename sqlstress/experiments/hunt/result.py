"""Options and result of a hunt (a search for races)."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlstress.experiments.hunt.spec import Schedule
from sqlstress.options.option import REST, option
from sqlstress.options.parsing import duration, switch, word_list
from sqlstress.report.case import Case
from sqlstress.report.results import Verdict

HUNT_HEADING = "Hunt"


@dataclass(frozen=True, slots=True)
class Hunting:
    """Options of a hunt: length, pauses, and the user's work."""

    max_time: float = option(
        duration(1.0),
        "60s",
        HUNT_HEADING,
        "How long to look for a failure. The last round is completed. A round that fails is then repeated "
        "and shrunk: --shrink-time.",
        metavar="TIME",
    )
    shrink_time: float = option(
        duration(0.0),
        "30s",
        HUNT_HEADING,
        "How long to shrink a failing round. It is repeated at least 5 times, and so is the smallest one "
        "afterwards. 0s turns this off.",
        metavar="TIME",
    )
    as_given: bool = option(
        switch,
        None,
        HUNT_HEADING,
        "Turn random choices off: what is not given stays off. Used to repeat a round.",
        flag=True,
    )
    no_pauses: bool = option(switch, None, HUNT_HEADING, "Do not pause inside SQLite.", flag=True)
    load: tuple[str, ...] = option(
        word_list,
        (),
        HUNT_HEADING,
        "Hunt in your own work: app FILE or sql FILE, with the options of that command.",
        metavar="[app|sql FILE ...]",
        argument=REST,
    )


BUILTIN_LOAD = "races"
"""Name of the experiment with the hunt's own load, which runs if the user gives no work."""
WAL_RESET = "sqlite-wal-reset-bug"
"""Code of SQLite's WAL-reset bug in the warnings of a report."""


@dataclass(frozen=True, slots=True)
class Witness:
    """Round of a hunt in which checks failed."""

    case: Case
    """Case (set of options) of the round, including the pauses of the hunt's own load."""
    verdict: Verdict
    """Results of the checks, with counter-examples."""
    schedule: Schedule | None = None
    """Pauses of the user's work; null for the hunt's own load. The pauses of that load are in `case`."""
    tries: int = 0
    """Number of repetitions of the round."""
    failed: int = 0
    """Number of repetitions with failed checks."""
    command: tuple[str, ...] = ()
    """Command that repeats the round, as words."""


@dataclass(frozen=True, slots=True)
class Hunt:
    """Search for races, with its result."""

    driver: str
    """Name of the driver."""
    work: str
    """Experiment whose load the rounds run: "races" (the hunt's own load), or that of the user's work."""
    seed: int
    """Seed of the random rounds."""
    max_time_s: float
    """Time limit of the search, in seconds."""
    round_s: float = 1.0
    """Length of a round, in seconds."""
    pauses: bool = True
    """Whether processes paused inside SQLite."""
    checked: bool = True
    """Whether the user gave checks of the data; true for the hunt's own load."""
    rounds: int = 0
    """Number of completed rounds."""
    operations: dict[str, int] = field(default_factory=dict)
    """Number of operations in completed rounds, by kind."""
    seconds: float = 0.0
    """Time until a round failed or the search ended, in seconds."""
    found: Witness | None = None
    """First round that failed; null if none did."""
    smallest: Witness | None = None
    """Smallest variant of the failed round that also failed; null if there is none."""
    known: str | None = None
    """Code of a known bug of the SQLite version that may be the cause; null if none is known."""
    error: str | None = None
    """Reason why the search ended early; null if complete or interrupted."""
