"""Base class of experiments, and functions that return an experiment by its name, a case or a command.

An experiment is a kind of load or test. Each experiment is a package below `sqlstress.experiments`, whose
module `experiment` has a subclass of `Experiment`. The methods of the subclass import the other parts of the
experiment when they are called, because `--help` and tables do not need all parts. A case is one set of
option values to measure; a run is all trials of a case.
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
"""Empty mapping that cannot be changed, as a default."""


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Command that measures an experiment."""

    name: str = ""
    """Name of the command; empty if options of another command select the cases of the experiment."""
    summary: str = ""
    """Line that describes the command in the list of all commands."""
    help: str = ""
    """Sentences on the command for its `--help`."""
    example: str = ""
    """Complete command line as an example."""
    takes: tuple[str, ...] = ()
    """Suffixes of the files that can be the first argument, such as ".py"."""
    main_options: tuple[str, ...] = ()
    """Names of options that `--help` shows first. `sqlstress --help` also lists those of command kv."""


class StudySpec(ResultFormat):
    """Description of a study, which chooses the cases to measure, and the format of its result."""

    observes_only: ClassVar[bool] = False
    """Whether the study only observes other programs and shows their state, without databases of its own."""
    reads_options: ClassVar[bool] = False
    """Whether the study parses its options with `parse_request`. If not, its options select cases."""

    def make(self, cases: Sequence[Case], selection: Any) -> Any:
        """Return a `Study` of these cases. `selection` has the options that cases do not store."""
        raise NotImplementedError

    def parse_request(self, options: Mapping[str, Any], read_words: Any) -> Any:
        """Return a `StudyRequest` or `ObservationRequest` from unparsed options. Raises UsageError.

        `read_words` parses words of a command line as options.
        """
        raise NotImplementedError


class Experiment(ReportFormat):
    """Base class of experiments. A subclass overrides the attributes and methods that differ."""

    # Command and options.

    command: ClassVar[CommandLine] = CommandLine()
    """Command that measures the experiment."""
    options: ClassVar[tuple[Option, ...]] = ()
    """Options of the command, in the order of `--help`."""
    selection: ClassVar[type] = NoOptions
    """Dataclass of options that select cases but are not stored in them."""
    unsupported: ClassVar[Mapping[str, str]] = NO_VALUES
    """Reasons why the experiment lacks options of other experiments, by name of the option."""
    single_case_values: ClassVar[Mapping[str, Any]] = NO_VALUES
    """Values of options when a study measures a single case; None removes the option."""
    study: ClassVar[StudySpec | None] = None
    """Study that chooses which of the requested cases to measure; None if all are measured."""

    def cases(self, request: Request[Any, Any]) -> Iterator[Case]:
        """Yield the requested cases. Raises UsageError if options contradict each other."""
        return iter(())

    # Tables. The cases of a table are shown and compared together.

    sweeps: ClassVar[bool] = False
    """Whether tables and labels identify a case by its numbers of processes and files only."""
    many_files: ClassVar[bool] = True
    """Whether the data of a case may be in several files. If so, tables show the number of files."""

    def table(self) -> str:
        """Return the experiment in whose tables these cases appear: its own name, or that of another."""
        return self.name

    def table_key(self, case: Case) -> Case:
        """Return the case as the key of its table: fields that may differ in a table have fixed values."""
        return replace(case, concurrency=1, buckets=1, seed=0, arrivals=case.arrivals and case.arrivals.at(1))

    def traits(self, case: Case) -> Mapping[str, str]:
        """Return the options of a case by name. Tables that differ in only one option are merged."""
        return NO_VALUES

    def work_key(self, case: Case) -> Case:
        """Return the case as the key of its work: fields that do not affect the work have fixed values."""
        return case

    # Labels for sentences that several experiments share.

    activity: ClassVar[str] = ""
    """Description of the work, for tables that also show cases of another experiment; else empty."""
    label_fields: ClassVar[frozenset[str]] = frozenset()
    """Fields of the spec whose values `work_label` contains."""

    def work_label(self, case: Case) -> str:
        """Return a label of the work of each process. Cases with different work have different labels."""
        return case.workload

    def unit(self, case: Case) -> str:
        """Return the name of the counted operation in the singular, such as "transaction"."""
        return "transaction"

    def rate_units(self, case: Case) -> str:
        """Return the unit of the rates by which cases are compared, in the plural."""
        return f"{self.unit(case)}s"

    def name_outsider(self, change: str) -> str:
        """Return a clause on the program that made a `change`, such as "another program deleted the file"."""
        return f"another program {change}"

    # Measurement.

    windowed: ClassVar[bool] = False
    """Whether a trial counts the operations in a window of time, unless their number is given."""
    retries_empty: ClassVar[bool] = False
    """Whether a trial without operations is measured again. If not, its rate is 0."""
    common_start: ClassVar[bool] = True
    """Whether the processes of a trial begin at the same time, on files of this trial only. If not, their
    start is part of the measured time, and all trials use the same files."""
    keeps_workers: ClassVar[bool] = False
    """Whether a worker process can run the next trial, too, as it keeps no state."""
    opens_database: ClassVar[bool] = True
    """Whether the workers open the database. If not, their programs open it."""
    applies_settings: ClassVar[bool] = True
    """Whether connections get the settings of the case. If not, the user's code chooses them."""
    retries_refused: ClassVar[bool] = True
    """Whether a transaction that a server refused is retried until the busy timeout. If not, options of the
    case limit the number of tries."""

    def transactions_each(self, case: Case) -> int:
        """Return the number of transactions that one operation of the timed loop counts as."""
        return 1

    def count_transactions(self, case: Case, operations: int) -> int:
        """Return the number of transactions that `operations` operations of the timed loop count as."""
        return operations * self.transactions_each(case)

    def writes(self, case: Case) -> bool:
        return True

    def loop_of(self, case: Case) -> str:
        """Return the loop that runs the operations, native (in C) or python; "" if there is only one."""
        return ""

    def estimated_s(self, case: Case) -> float:
        """Return the estimated duration of the work of one trial, in seconds."""
        return case.duration_s + case.warmup_s

    def is_reference(self, case: Case) -> bool:
        """Return whether a case only shows the cost of the method, so no other case is compared with it."""
        return False

    def timeout_s(self, case: Case) -> float:
        """Return the time limit of a case, in seconds; 0 means no limit."""
        return 0.0

    def misses_long_waits(self, case: Case) -> bool:
        """Return whether an operation may wait longer than a window of default length.

        A sweep measures the largest case with such waits once more, with a longer window.
        """
        return False

    def skip_reason(self, case: Case, runs: Sequence[Run]) -> str | None:
        """Return the reason to skip a case, or None to measure it. `runs` are the results so far."""
        return None

    # Parts of the experiment, which are imported when they are needed.

    def open_work(self, case: Case, place: Any, salt: int, carry: dict[Any, Any]) -> Any:
        """Return a `Work`: the part of a trial in the parent process, which makes and checks data.

        `place` is the location of the data, and connects to it. `salt` makes the written values of the trial
        unique. `carry` is a dict for data that later trials of the session reuse.
        """
        raise NotImplementedError

    def worker_half(self) -> Callable[..., Any]:
        """Return the function that opens the worker's part of a trial: a `Source` of operations."""
        raise NotImplementedError

    def companions(self) -> Mapping[str, Callable[..., Any]]:
        """Return the classes of additional processes that may run during the load, by name."""
        return NO_VALUES

    def preloads(self, case: Case) -> tuple[str, ...]:
        """Return the names of further modules that the processes of a case import before they start."""
        return ()

    def presenter(self) -> Any:
        """Return the `Presenter`, which shows results of the experiment."""
        raise NotImplementedError

    @property
    def allowed_in_plans(self) -> bool:
        """Whether a plan can contain cases of the experiment."""
        return self.command.name != "" and self.study is None


def get_experiment(name: str) -> Experiment:
    """Return the experiment with this name. Raises KeyError for an unknown name."""
    return cast(Experiment, format_of(name))


def experiment_of(case: Case) -> Experiment:
    return get_experiment(case.workload)


def all_experiments() -> tuple[Experiment, ...]:
    """Return all experiments, in the order of `EXPERIMENTS`."""
    return tuple(map(get_experiment, EXPERIMENTS))


def commands() -> dict[str, Experiment]:
    """Return the experiments that have a command, by name of the command."""
    return {
        experiment.command.name: experiment for experiment in all_experiments() if experiment.command.name
    }


def windowed_commands() -> dict[str, Experiment]:
    """Return the experiments that `ab` and `limit` can measure, by name of the command."""
    return {
        name: experiment
        for name, experiment in commands().items()
        if experiment.windowed and not experiment.study
    }


def case_label(case: Case) -> str:
    """Return a short label of a case. Different cases of a plan have different labels."""
    processes = [f"{case.concurrency} process{'es' * (case.concurrency != 1)}"] if case.concurrency else []
    return ", ".join(filter(None, (experiment_of(case).work_label(case), *processes, case.rate_label)))


def unit_of(case: Case) -> str:
    """Return the name of the operation that a case counts, in the singular, such as "transaction"."""
    return experiment_of(case).unit(case)


def units_of(case: Case) -> str:
    """Return the name of the operations that a case counts, in the plural, such as "transactions"."""
    return f"{unit_of(case)}s"


def rate_units_of(case: Case) -> str:
    """Return the unit of the rates by which a case is compared, in the plural, such as "rows"."""
    return experiment_of(case).rate_units(case)


def has_window(case: Case) -> bool:
    """Return whether a case counts operations within a window of time; if not, its work is fixed."""
    return experiment_of(case).windowed and case.ops is None
