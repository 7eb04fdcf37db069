"""Options and result of a hunt: the first round that failed, and the smallest one."""

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
    """How long is hunted, and whether processes pause."""

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


OWN_LOAD = "races"
"""The work of a hunt that is not in the user's."""
WAL_RESET = "sqlite-wal-reset-bug"
"""Code of a known bug of SQLite, as warnings have it."""


@dataclass(frozen=True, slots=True)
class Witness:
    """A round in which something was found."""

    case: Case
    """Its load; of a round of the hunt's own load also its schedule."""
    verdict: Verdict
    """What was found wrong, with examples."""
    schedule: Schedule | None = None
    """Where the processes of the user's own work paused; None: the load says it."""
    tries: int = 0
    """How often the round was run again."""
    failed: int = 0
    """In how many of these something was found again."""
    command: tuple[str, ...] = ()
    """The words of the command that repeats it."""


@dataclass(frozen=True, slots=True)
class Hunt:
    """A search for races."""

    driver: str
    """Through which driver SQLite was used."""
    work: str
    """The experiment whose cases were run: OWN_LOAD, or that of the user's work."""
    seed: int
    """What the rounds were drawn from."""
    max_time_s: float
    """Seconds that were given to it."""
    round_s: float = 1.0
    """Length of a round, in seconds."""
    pauses: bool = True
    """Whether processes paused inside SQLite."""
    checked: bool = True
    """Whether something was checked that only the user knows; always of the hunt's own load."""
    rounds: int = 0
    """Rounds done."""
    operations: dict[str, int] = field(default_factory=dict)
    """What was done in them, by kind of operation."""
    seconds: float = 0.0
    """How long it took until something was found, or until it ended."""
    found: Witness | None = None
    """The first round in which something was found; None: nothing was."""
    smallest: Witness | None = None
    """The smallest round made of it in which it still was; None where none was looked for."""
    known: str | None = None
    """Code of what is known of this version of SQLite that may do it; None: nothing is."""
    error: str | None = None
    """Why it ended early; None when it did not, or was interrupted."""
