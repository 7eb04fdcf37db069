"""The face of a watch: it measures no case, and looks at a database that others use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlstress.experiment import CommandLine, Experiment, StudyOf, Words
from sqlstress.options.option import ONE, chosen, option, options_of
from sqlstress.options.parsing import duration, shown, switch, whole

WATCHING = "Watch"


@dataclass(frozen=True, slots=True)
class Watching:
    """How long, and how often, a database is looked at."""

    duration_s: float | None = option(
        duration(0.1),
        None,
        WATCHING,
        "How long to watch: 10s if not given; with --until-held, until that happens.",
        name="duration",
        metavar="TIME",
        meaning="How long to watch, in seconds; null: until somebody holds the write lock for too long.",
    )
    rate: int = option(
        whole(1, 1000),
        100,
        WATCHING,
        "Samples per second. Shorter holds than the time between two can be missed.",
    )
    until_held_s: float | None = option(
        duration(0.001),
        None,
        WATCHING,
        "Exit 1 as soon as a process has held the write lock for longer than TIME.",
        name="until-held",
        metavar="TIME",
        meaning="The watch ends when a process has held the write lock for more seconds; null: it does not.",
    )


def file_name(value: Any) -> str:
    """Read the name of a file. Raises ValueError."""
    if not isinstance(value, str | Path) or not str(value) or "\0" in str(value):
        raise ValueError(f"{shown(value)} is not a file name: write app.db")
    return str(value)


@dataclass(frozen=True, slots=True)
class Shown:
    """What is watched, and how it is shown meanwhile."""

    file: str | None = option(
        file_name, None, WATCHING, "Database that other programs use now.", metavar="FILE", argument=ONE
    )
    plain: bool | None = option(
        switch, None, WATCHING, "Print a line a second also on a terminal, as in a pipe.", flag=True
    )


@dataclass(frozen=True, slots=True)
class Nothing:
    """A watch measures no cases."""


WATCH = Experiment(
    name="watch",
    spec=Nothing,
    command=CommandLine(
        name="watch",
        summary="Show who holds the locks of a database that is in use now.",
        help=(
            "Show who holds the locks of a database that other programs use now (Linux and macOS).\n\n"
            "It opens the file without SQLite, takes no lock and writes nothing to it. Exits 1 only with "
            "--until-held, as soon as a process has held the write lock for too long."
        ),
        main_options=("duration", "until-held", "rate", "plain", "output"),
        example="sqlstress watch app.db",
    ),
    options=(*chosen(options_of(Shown)), *chosen(options_of(Watching))),
    extra=Watching,
    words=Words(work_of=lambda case: "a watch", unit="sample"),
    study=StudyOf(
        asks="sqlstress.experiments.watch.study:study_of",
        looks_on=True,
        result="sqlstress.experiments.watch.results:Watch",
        result_key=("watch", "locks"),
        called="a watch",
    ),
    shown="sqlstress.experiments.watch.show:WatchShown",
)
