"""The face of a hunt: rounds of a load of its own, each drawn anew."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlstress.experiment import Behaviour, CommandLine, Experiment, StudyOf, Words
from sqlstress.experiments.hunt.spec import SETTINGS, Round, Schedule
from sqlstress.options.option import REST, chosen, option, options_of
from sqlstress.options.parsing import choice, duration, switch, word_list
from sqlstress.report.case import Case, common, otherwise
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


HUNT = Experiment(
    name="races",
    spec=Round,
    key="round",
    command=CommandLine(
        name="hunt",
        summary="Find races in this SQLite with random loads and random pauses.",
        help=(
            "Find races in SQLite. Each round runs a random load, and its processes pause at random inside "
            "SQLite.\n\n"
            "It stops if an acknowledged commit is lost, a read is stale or inconsistent, or a file is "
            "damaged. Exits 1 with the smallest round that fails, 0 if nothing was found. It takes a minute, "
            "and half a minute or more after a failure."
        ),
        main_options=("max-time", "driver", "seed", "writers", "readers", "output"),
        example="sqlstress hunt --max-time 60s",
    ),
    options=(
        *chosen(options_of(Hunting)),
        otherwise("duration", default="1s", group=HUNT_HEADING, help="Length of one round."),
        otherwise(
            "driver",
            parse=choice("sqlite3", "apsw"),
            help="Driver: sqlite3 (standard library) or apsw (optional).",
        ),
        *common("seed"),
        *chosen(options_of(Round)),
        *chosen(options_of(Schedule), "pause"),
        *(otherwise(name.replace("_", "-"), default=None) for name in SETTINGS),
    ),
    extra=Hunting,
    cases=lambda request: iter((request.case,)),  # what is to be drawn is None in it
    words=Words(work_of=lambda case: "a round of a hunt", unit="operation"),
    behaviour=Behaviour(windowed=True, many_files=False),
    work="sqlstress.experiments.hunt.work:HuntWork",
    worker="sqlstress.experiments.hunt.worker:HuntSource",
    study=StudyOf(
        asks="sqlstress.experiments.hunt.study:study_of",
        result="sqlstress.experiments.hunt.experiment:Hunt",
        result_key=("hunt", "found"),
        called="a hunt",
    ),
    shown="sqlstress.experiments.hunt.show:HuntShown",
)


# What a hunt adds to a report: what was tried, and the round in which something was found.


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
