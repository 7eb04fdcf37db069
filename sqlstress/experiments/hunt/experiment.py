"""The command `hunt`, a search for races, and its experiment `races`: trials with a random load."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sqlstress.experiment import CommandLine, Experiment, StudySpec
from sqlstress.experiments.hunt.result import HUNT_HEADING, Hunt, Hunting
from sqlstress.experiments.hunt.spec import SETTINGS, Round, Schedule
from sqlstress.options.option import options_of, select_options
from sqlstress.options.parsing import choice
from sqlstress.report.case import Case, common, otherwise
from sqlstress.request import Request

if TYPE_CHECKING:
    from sqlstress.engine.study import ReadWords, StudyRequest
    from sqlstress.experiments.hunt.show import HuntShown
    from sqlstress.experiments.hunt.work import HuntWork
    from sqlstress.experiments.hunt.worker import HuntSource


class HuntSpec(StudySpec):
    """Declaration of the study that the command `hunt` runs: a search for races.

    A study is a measurement that chooses its cases itself, such as the random rounds of a hunt.
    """

    result = Hunt
    result_key = ("hunt", "found")
    label = "a hunt"
    reads_options = True

    def parse_request(self, options: Mapping[str, Any], read_words: ReadWords) -> StudyRequest:
        from sqlstress.experiments.hunt.study import study_of

        return study_of(options, read_words)


class HuntExperiment(Experiment):
    """The experiment `races`: the load that `sqlstress hunt` runs if the user gives no work."""

    name = "races"
    spec = Round
    key = "round"
    command = CommandLine(
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
    )
    options = (
        *select_options(options_of(Hunting)),
        otherwise("duration", default="1s", group=HUNT_HEADING, help="Length of one round."),
        otherwise(
            "driver",
            parse=choice("sqlite3", "apsw"),
            help="Driver: sqlite3 (standard library) or apsw (optional).",
        ),
        *common("seed"),
        *select_options(options_of(Round)),
        *select_options(options_of(Schedule), "pause"),
        *(otherwise(name.replace("_", "-"), default=None) for name in SETTINGS),
    )
    selection = Hunting
    study = HuntSpec()
    windowed = True
    many_files = False

    def cases(self, request: Request[Round, Hunting]) -> Iterator[Case]:
        yield request.case  # each round replaces the fields that are None by random values

    def work_label(self, case: Case) -> str:
        return "a round of a hunt"

    def unit(self, case: Case) -> str:
        return "operation"

    def open_work(self, case: Case, place: Any, salt: int, carry: dict[Any, Any]) -> HuntWork:
        from sqlstress.experiments.hunt.work import HuntWork

        return HuntWork(case, place, salt, carry)

    def worker_half(self) -> Callable[..., HuntSource]:
        from sqlstress.experiments.hunt.worker import HuntSource

        return HuntSource

    def presenter(self) -> HuntShown:
        from sqlstress.experiments.hunt.show import HuntShown

        return HuntShown()
