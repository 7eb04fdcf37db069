"""The face of a watch: it measures no case, and looks at a database that others use."""

from __future__ import annotations

from sqlstress.experiment import CommandLine, Experiment, StudyOf, Words
from sqlstress.experiments.watch.spec import Shown, Watching
from sqlstress.options.option import Nothing, chosen, options_of

WATCH = Experiment(
    name="watch",
    spec=Nothing,
    command=CommandLine(
        name="watch",
        summary="Show who holds the locks of a database that is in use now.",
        help=(
            "Show who holds the locks of a database that other programs use now (Linux and macOS).\n\n"
            "It opens the file without SQLite, takes no lock and writes nothing to it. Exits 1 if a process "
            "writes into a deleted WAL, and with --until-held if the write lock was held for too long."
        ),
        takes=(".db", ".db3", ".sqlite", ".sqlite3"),
        main_options=("duration", "until-held", "rate", "plain", "output"),
        example="sqlstress watch app.db",
    ),
    options=(*chosen(options_of(Shown)), *chosen(options_of(Watching))),
    selection=Watching,
    words=Words(work_of=lambda case: "a watch", unit="sample"),
    study=StudyOf(
        asks="sqlstress.experiments.watch.study:study_of",
        looks_on=True,
        result="sqlstress.experiments.watch.spec:Watch",
        result_key=("watch", "locks"),
        called="a watch",
    ),
    shown="sqlstress.experiments.watch.show:WatchShown",
)
