"""The face of a hunt: rounds of a load of its own, each drawn anew."""

from __future__ import annotations

from sqlstress.experiment import Behaviour, CommandLine, Experiment, StudyOf, Words
from sqlstress.experiments.hunt.result import HUNT_HEADING, Hunting
from sqlstress.experiments.hunt.spec import SETTINGS, Round, Schedule
from sqlstress.options.option import chosen, options_of
from sqlstress.options.parsing import choice
from sqlstress.report.case import common, otherwise

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
    selection=Hunting,
    cases=lambda request: iter((request.case,)),  # what is to be drawn is None in it
    words=Words(work_of=lambda case: "a round of a hunt", unit="operation"),
    behaviour=Behaviour(windowed=True, many_files=False),
    work="sqlstress.experiments.hunt.work:HuntWork",
    worker="sqlstress.experiments.hunt.worker:HuntSource",
    study=StudyOf(
        asks="sqlstress.experiments.hunt.study:study_of",
        result="sqlstress.experiments.hunt.result:Hunt",
        result_key=("hunt", "found"),
        called="a hunt",
    ),
    shown="sqlstress.experiments.hunt.show:HuntShown",
)
