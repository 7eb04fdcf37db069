"""Command `watch`, which observes a database that other programs use, and runs no load itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlstress.experiment import CommandLine, Experiment, StudySpec
from sqlstress.experiments.watch.spec import DisplayOptions, Watch, Watching
from sqlstress.options.option import NoOptions, options_of, select_options
from sqlstress.report.case import Case

if TYPE_CHECKING:
    from sqlstress.engine.study import ObservationRequest, ReadWords
    from sqlstress.experiments.watch.show import WatchShown


class WatchSpec(StudySpec):
    """Description of `watch`: type and JSON key of its result, and the parser of its options."""

    result = Watch
    result_key = ("watch", "locks")
    label = "a watch"
    observes_only = True
    reads_options = True

    def parse_request(self, options: Mapping[str, Any], read_words: ReadWords) -> ObservationRequest:
        from sqlstress.experiments.watch.study import study_of

        return study_of(options, read_words)


class WatchExperiment(Experiment):
    """The experiment `watch`. It runs no load, so it has no cases (sets of options to measure)."""

    name = "watch"
    spec = NoOptions
    command = CommandLine(
        name="watch",
        summary="Show who holds the locks of a database that is in use now.",
        help=(
            "Show who holds the locks of a database that other programs use now (Linux and macOS).\n\n"
            "It opens the file without SQLite, takes no lock and writes nothing to it. Exits 1 if a process "
            "writes into a deleted WAL, with --until-held if the write lock was held for too long, and with "
            "--until-wal if the WAL is too large."
        ),
        takes=(".db", ".db3", ".sqlite", ".sqlite3"),
        main_options=("duration", "until-held", "until-wal", "rate", "plain", "output"),
        example="sqlstress watch app.db",
    )
    options = (*select_options(options_of(DisplayOptions)), *select_options(options_of(Watching)))
    selection = Watching
    study = WatchSpec()

    def work_label(self, case: Case) -> str:
        return "a watch"

    def unit(self, case: Case) -> str:
        return "sample"

    def presenter(self) -> WatchShown:
        from sqlstress.experiments.watch.show import WatchShown

        return WatchShown()
