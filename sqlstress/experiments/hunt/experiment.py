"""The face of a hunt: rounds of a load of its own, each drawn anew."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstress.experiment import Behaviour, CommandLine, Experiment, StudyOf, Words
from sqlstress.experiments.hunt.spec import Round, Schedule
from sqlstress.options.option import REST, chosen, option, options_of
from sqlstress.options.parsing import choice, duration, switch, word_list
from sqlstress.report.case import common, otherwise

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
        noun="a hunt",
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
        *(
            otherwise(name, default=None)
            for name in (
                "journal-mode",
                "synchronous",
                "wal-autocheckpoint",
                "page-size",
                "cache-size",
                "mmap-size",
            )
        ),
    ),
    extra=Hunting,
    cases=lambda request: iter((request.case,)),  # what is to be drawn is None in it
    words=Words(work_of=lambda case: "a round of a hunt", unit="operation"),
    behaviour=Behaviour(windowed=True, many_files=False),
    work="sqlstress.experiments.hunt.work:HuntWork",
    worker="sqlstress.experiments.hunt.worker:HuntSource",
    study=StudyOf(
        asks="sqlstress.experiments.hunt.study:study_of",
        result="sqlstress.experiments.hunt.results:Hunt",
        result_key=("hunt", "found"),
        called="a hunt",
    ),
    shown="sqlstress.experiments.hunt.show:HuntShown",
)
