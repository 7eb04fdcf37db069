"""Base class of experiments, and functions that find an experiment by name, case or command.

An experiment is a kind of load or test: a package below `sqlstress.experiments`, whose module `experiment`
has a subclass of `Experiment`. Methods of the subclass import further parts only when called, because
`--help` and tables do not need them. A case is a set of option values to measure. A run is all trials of a
case. A spec has the options that only one experiment has. A study decides during the run what to measure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, cast

from sqlstress.options.option import NoOptions, Option
from sqlstress.registry import EXPERIMENTS, ReportFormat, ResultFormat, format_of
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.request import Request

NO_VALUES: Mapping[str, Any] = MappingProxyType({})
"""Immutable empty mapping: the default of several attributes of `Experiment`."""


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Command-line command of an experiment."""

    name: str = ""
    """Name of the command; empty if options of another command select the experiment."""
    summary: str = ""
    """Description of the command in the list of commands, on one line."""
    help: str = ""
    """Text of the command's `--help`."""
    example: str = ""
    """Complete command line, as an example."""
    takes: tuple[str, ...] = ()
    """Suffixes of the files that the first argument can name, such as ".py"."""
    main_options: tuple[str, ...] = ()
    """Options that `--help` shows first."""


class StudySpec(ResultFormat):
    """Description of a study, such as a crash test: how to make and report it."""

    observes_only: ClassVar[bool] = False
    """Whether the study only observes other programs, without databases of its own."""
    reads_options: ClassVar[bool] = False
    """Whether `parse_request` makes the study from options. If not, `make` makes the study of given cases."""

    def make(self, cases: Sequence[Case], selection: Any) -> Any:
        """Return a `Study` of these cases. `selection` has the options that cases do not store."""
        raise NotImplementedError

    def parse_request(self, options: Mapping[str, Any], read_words: Any) -> Any:
        """Return a `StudyRequest` or `ObservationRequest` from unparsed options. Raises UsageError.

        `read_words` is a function that parses further words of a command line, such as those of a load.
        """
        raise NotImplementedError


class Experiment(ReportFormat):
    """Base class of experiments (kinds of load), whose subclasses override the defaults below.

    Everything that is special to an experiment, for the command line, the engine and the reports, is here.
    """

    # Command and options.

    command: ClassVar[CommandLine] = CommandLine()
    """Command-line command of the experiment."""
    options: ClassVar[tuple[Option, ...]] = ()
    """Options of the command, in the order of `--help`."""
    selection: ClassVar[type] = NoOptions
    """Dataclass of options that select cases and are not stored in them, such as `app --start`."""
    unsupported: ClassVar[Mapping[str, str]] = NO_VALUES
    """Reasons why this experiment lacks options of other experiments, by name of the option."""
    single_case_values: ClassVar[Mapping[str, Any]] = NO_VALUES
    """Values of options that a study of one case, such as `limit`, sets; None removes the option."""
    study: ClassVar[StudySpec | None] = None
    """Study that chooses the cases to measure; None if all cases are measured."""

    def cases(self, request: Request[Any, Any]) -> Iterator[Case]:
        """Yield the requested cases. Raises UsageError if options contradict each other."""
        return iter(())

    # Tables. A table has a row per case. The cases of a table are shown and compared together.

    sweeps: ClassVar[bool] = False
    """Whether row labels are numbers of processes and files: "8 processes". If not, see `case_label`."""
    many_files: ClassVar[bool] = True
    """Whether a case may have several database files. If so, tables show their number."""

    def table(self) -> str:
        """Return the name of the experiment in whose tables the cases appear: by default, this one."""
        return self.name

    def table_key(self, case: Case) -> Case:
        """Return the key of a case's table: the case without the fields in which rows may differ."""
        return replace(case, concurrency=1, buckets=1, seed=0, arrivals=case.arrivals and case.arrivals.at(1))

    def traits(self, case: Case) -> Mapping[str, str]:
        """Return a case's options as text. Tables whose cases differ in a single option are merged."""
        return NO_VALUES

    def work_key(self, case: Case) -> Case:
        """Return the case without fields that do not change its work, such as --where.

        Cases of two reports with equal keys share a row of a comparison.
        """
        return case

    # Labels for sentences that several experiments share.

    activity: ClassVar[str] = ""
    """Noun phrase on the work, such as "SQL scripts". If empty, sentences use the name."""
    label_fields: ClassVar[frozenset[str]] = frozenset()
    """Fields of the spec that `work_label` contains. Longer names of a case do not repeat them."""

    def work_label(self, case: Case) -> str:
        """Return a label of each process's work, such as "bank.py", different for different work."""
        return case.workload

    def unit(self, case: Case) -> str:
        """Return the name of a counted operation, such as "transaction"."""
        return "transaction"

    def rate_units(self, case: Case) -> str:
        """Return the plural unit of the rate by which cases are compared, such as "rows"."""
        return f"{self.unit(case)}s"

    # Measurement.

    windowed: ClassVar[bool] = False
    """Whether trials count operations in a window of time, unless the user sets their number."""
    retries_empty: ClassVar[bool] = False
    """Whether a trial without operations is measured again. If not, its rate of 0 counts."""
    common_start: ClassVar[bool] = True
    """Whether all processes of a trial begin their work at one time, on files of this trial only.

    If not, as in the published scripts, the start of the processes is part of the measured time, and all
    trials use the same files.
    """
    keeps_workers: ClassVar[bool] = False
    """Whether a worker process can run further trials, because it keeps no state."""
    opens_database: ClassVar[bool] = True
    """Whether workers open the database. If not, the user's programs open it."""
    applies_settings: ClassVar[bool] = True
    """Whether connections get the settings of the case. If not, the user's code chooses them."""
    retries_refused: ClassVar[bool] = True
    """Whether workers retry a transaction that a server refused, until the busy timeout.

    If not, options of the case limit the number of tries.
    """

    def transactions_each(self, case: Case) -> int:
        """Return the number of transactions in one operation of the timed loop."""
        return 1

    def count_transactions(self, case: Case, operations: int) -> int:
        """Return the number of transactions in `operations` operations of the timed loop."""
        return operations * self.transactions_each(case)

    def writes(self, case: Case) -> bool:
        return True

    def loop_of(self, case: Case) -> str:
        """Return the loop that runs operations: "native" (C) or "python"; "" without a choice."""
        return ""

    def estimated_s(self, case: Case) -> float:
        """Return the estimated duration of one trial, in seconds."""
        return case.duration_s + case.warmup_s

    def is_reference(self, case: Case) -> bool:
        """Return whether the case, such as an empty command, only shows the measurement's cost."""
        return False

    def timeout_s(self, case: Case) -> float:
        """Return the time limit of a case in seconds; 0 means no limit."""
        return 0.0

    def has_default_windows(self, case: Case) -> bool:
        """Return whether the number and length of the case's trials are this experiment's defaults."""
        defaults = {option.name: option.value for option in self.options}
        return (case.duration_s, case.repeat, case.ops) == (defaults["duration"], defaults["repeat"], None)

    def needs_longer_window(self, case: Case) -> bool:
        """Return whether the window of this case is too short for long waits and rare events.

        Of all such cases, that with the most processes is measured again in a longer window.
        """
        return False

    def skip_reason(self, case: Case, runs: Sequence[Run]) -> str | None:
        """Return the reason to skip a case, given earlier results; None to measure it."""
        return None

    # Parts of the experiment, which are imported when they are needed.

    def open_work(self, case: Case, place: Any, salt: int, carry: dict[Any, Any]) -> Any:
        """Return a `Work`: a trial's part in the parent process, which makes and checks data.

        `place` gives access to the data. `salt` is a number that makes the trial's written values unique.
        `carry` is a dict in which trials leave data for later trials.
        """
        raise NotImplementedError

    def worker_half(self) -> Callable[..., Any]:
        """Return the function, or class, that makes a `Source` of operations in each worker process."""
        raise NotImplementedError

    def companions(self) -> Mapping[str, Callable[..., Any]]:
        """Return classes of additional processes during the load, such as a checkpointer, by name."""
        return NO_VALUES

    def preloads(self, case: Case) -> tuple[str, ...]:
        """Return the names of modules to import before processes start, to save time."""
        return ()

    def presenter(self) -> Any:
        """Return the `Presenter`, which shows the results."""
        raise NotImplementedError

    @property
    def allowed_in_plans(self) -> bool:
        """Whether a plan can contain cases of this experiment."""
        return self.command.name != "" and self.study is None


def get_experiment(name: str) -> Experiment:
    """Return the experiment `name`. Raises KeyError for an unknown name."""
    return cast(Experiment, format_of(name))


def experiment_of(case: Case) -> Experiment:
    return get_experiment(case.workload)


def all_experiments() -> tuple[Experiment, ...]:
    """Return all experiments, in the order of `EXPERIMENTS`."""
    return tuple(map(get_experiment, EXPERIMENTS))


def commands() -> dict[str, Experiment]:
    """Return the experiments with a command, by name of the command."""
    return {
        experiment.command.name: experiment for experiment in all_experiments() if experiment.command.name
    }


def windowed_commands() -> dict[str, Experiment]:
    """Return the experiments that `ab` and `limit` support, by name of the command."""
    return {
        name: experiment
        for name, experiment in commands().items()
        if experiment.windowed and not experiment.study
    }


def case_label(case: Case) -> str:
    """Return a short label of a case, such as "8 processes", which no other case of the plan has."""
    processes = [f"{case.concurrency} process{'es' * (case.concurrency != 1)}"] if case.concurrency else []
    return ", ".join(filter(None, (experiment_of(case).work_label(case), *processes, case.rate_label)))


def unit_of(case: Case) -> str:
    """Return the name of a case's counted operation, such as "transaction"."""
    return experiment_of(case).unit(case)


def units_of(case: Case) -> str:
    """Return the plural name of a case's counted operations, such as "transactions"."""
    return f"{unit_of(case)}s"


def rate_units_of(case: Case) -> str:
    """Return the plural unit of the rates by which a case is compared, such as "rows"."""
    return experiment_of(case).rate_units(case)


def has_window(case: Case) -> bool:
    """Return whether a case counts operations in a window of time. If not, its work is fixed."""
    return experiment_of(case).windowed and case.ops is None
