"""Base class of the experiments, and how to get one by its name, by a case or by its command.

An experiment is a package below `sqlstress.experiments`, with a subclass in its module `experiment`. Its
methods import the presenter, the study and both halves when they are called: help and tables need neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, cast

from sqlstress.options.option import NoOptions, Option
from sqlstress.registry import EXPERIMENTS, ReportFormat, ResultFormat, format_of
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.request import Request

NO_VALUES: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Command that measures an experiment."""

    name: str = ""
    """Name; empty if options of another command select the cases."""
    summary: str = ""
    """One line for the list of all commands."""
    help: str = ""
    """A few sentences."""
    example: str = ""
    """Command line that works."""
    takes: tuple[str, ...] = ()
    """Suffixes of the files that can be its first argument, such as ".py"."""
    main_options: tuple[str, ...] = ()
    """Names of the options that `--help` shows first. Options of all commands may be among them.

    The list of all commands also shows those of the default experiment."""


class StudySpec(ResultFormat):
    """Study of an experiment: it decides which cases are measured, and leaves a result in the report."""

    observes_only: ClassVar[bool] = False
    """Whether it observes other programs: it makes no databases, and shows each moment."""
    reads_options: ClassVar[bool] = False
    """Whether `parse_request` reads the options; otherwise they select cases, as for a sweep."""

    def make(self, cases: Sequence[Case], selection: Any) -> Any:
        """Return a `Study` of these cases."""
        raise NotImplementedError

    def parse_request(self, options: Mapping[str, Any], read_words: Any) -> Any:
        """Return a `StudyRequest` or `LookingOn` from unparsed options; `read_words` parses words as options.

        Raises UsageError.
        """
        raise NotImplementedError


class UnknownFigure(NamedTuple):
    """Figure of a case that is 0 if unknown, as in published reports."""

    label: str
    value: Callable[[Case], int | None]
    without: Callable[[Case], Case]
    """Returns a case without the figure."""


class Experiment(ReportFormat):
    """Base class of the experiments. A subclass overrides what differs."""

    # Command and options.

    command: ClassVar[CommandLine] = CommandLine()
    options: ClassVar[tuple[Option, ...]] = ()
    """Options, in the order of `--help`."""
    selection: ClassVar[type] = NoOptions
    """Dataclass of options that select cases but are not stored in them."""
    unsupported: ClassVar[Mapping[str, str]] = NO_VALUES
    """Reason why an option of other experiments is missing, by its name."""
    single_case_values: ClassVar[Mapping[str, Any]] = NO_VALUES
    """Options replaced (removed, if None) when a study such as `ab` or `limit` measures a single case."""
    study: ClassVar[StudySpec | None] = None

    def cases(self, request: Request[Any, Any]) -> Iterator[Case]:
        """Yield the requested cases. Raises UsageError if options contradict each other."""
        return iter(())

    # Tables: cases that are shown and compared together.

    sweeps: ClassVar[bool] = False
    """Whether tables and labels name its cases by the layout and the number of processes."""
    many_files: ClassVar[bool] = True
    """Whether its data may lie in several files; otherwise no text mentions their number."""

    def table(self) -> str:
        """Return the name of the experiment in whose tables its cases appear."""
        return self.name

    def table_key(self, case: Case) -> Case:
        """Return a case without the fields that may differ within a table."""
        return replace(case, concurrency=1, buckets=1, seed=0, arrivals=case.arrivals and case.arrivals.at(1))

    def traits(self, case: Case) -> Mapping[str, str]:
        """Return a case's options as text, by option name.

        Tables are merged if their cases differ in only one of these options. An empty mapping prevents this.
        """
        return NO_VALUES

    def work_key(self, case: Case) -> Case:
        """Return a case without the fields that do not affect the work."""
        return case

    def unknown_figures(self) -> Mapping[str, UnknownFigure]:
        """Return figures that published reports may lack, by name."""
        return NO_VALUES

    # Labels in shared sentences.

    activity: ClassVar[str] = ""
    """Work of its processes, if another experiment has the same tables."""
    label_fields: ClassVar[frozenset[str]] = frozenset()
    """Fields of the spec that `work_label` contains."""

    def work_label(self, case: Case) -> str:
        """Return a label for the work of each process, different from those of other cases in the plan."""
        return case.workload

    def unit(self, case: Case) -> str:
        """Return the name of one transaction of the report."""
        return "transaction"

    def rate_units(self, case: Case) -> str:
        """Return the unit of the rates by which cases are compared, in the plural."""
        return f"{self.unit(case)}s"

    def name_outsider(self, change: str) -> str:
        """Return a sentence on who may have changed a definition; `change` is its predicate."""
        return f"another program {change}"

    # Measurement.

    windowed: ClassVar[bool] = False
    """Whether operations within a window are counted, unless a number of operations is given."""
    retries_empty: ClassVar[bool] = False
    """Whether a window without operations is measured again; otherwise it is 0 TPS."""
    common_start: ClassVar[bool] = True
    """Whether the processes of a trial begin together, on files of the trial.

    Otherwise their start counts, and the files serve a whole sweep."""
    keeps_workers: ClassVar[bool] = False
    """Whether a worker can run the next trial, because closing its store removes all state of the last."""
    opens_database: ClassVar[bool] = True
    """Whether its workers open the database; otherwise programs that they start do."""
    applies_settings: ClassVar[bool] = True
    """Whether connections have the settings of the case; otherwise the user's code chooses them."""
    retries_refused: ClassVar[bool] = True
    """Whether transactions refused by a server are retried until the timeout; else a case limits tries."""

    def transactions_each(self, case: Case) -> int:
        """Return the number of transactions that an operation of the timed loop stands for."""
        return 1

    def count_transactions(self, case: Case, operations: int) -> int:
        """Return the number of transactions in this number of operations of the timed loop."""
        return operations * self.transactions_each(case)

    def writes(self, case: Case) -> bool:
        """Return whether the workers write."""
        return True

    def loop_of(self, case: Case) -> str:
        """Return the loop that drives a case, native or python; empty if there is only one."""
        return ""

    def estimated_s(self, case: Case) -> float:
        """Return the estimated duration of the work of one trial, in seconds."""
        return case.duration_s + case.warmup_s

    def timeout_s(self, case: Case) -> float:
        """Return the time limit of a case, in seconds; 0 means no limit."""
        return 0.0

    def misses_long_waits(self, case: Case) -> bool:
        """Return whether default windows are too short for the waits of a case.

        In a sweep, the largest of such cases also gets one longer window.
        """
        return False

    def skip_reason(self, case: Case, runs: Sequence[Run]) -> str | None:
        """Return the reason to skip a case after these runs of any experiment, or None."""
        return None

    # Parts, imported when they are needed.

    def open_work(self, case: Case, place: Any, salt: int, carry: dict[Any, Any]) -> Any:
        """Return the parent's half of one trial: a `Work`."""
        raise NotImplementedError

    def worker_half(self) -> Callable[..., Any]:
        """Return the function or class that opens a `Source` in a worker process."""
        raise NotImplementedError

    def companions(self) -> Mapping[str, Callable[..., Any]]:
        """Return the classes of the processes that may run in addition to the workers, by name."""
        return NO_VALUES

    def preloads(self, case: Case) -> tuple[str, ...]:
        """Return the names of modules that its processes import in addition to those of their halves."""
        return ()

    def presenter(self) -> Any:
        """Return a `Shown`, which shows its results."""
        raise NotImplementedError

    @property
    def allowed_in_plans(self) -> bool:
        """Whether a plan can contain its cases: no study decides which are measured."""
        return self.command.name != "" and self.study is None


def get_experiment(name: str) -> Experiment:
    """Return the experiment with this name. Raises KeyError."""
    return cast(Experiment, format_of(name))


def experiment_of(case: Case) -> Experiment:
    """Return the experiment of a case."""
    return get_experiment(case.workload)


def all_experiments() -> tuple[Experiment, ...]:
    """Return all experiments, in their order."""
    return tuple(map(get_experiment, EXPERIMENTS))


def commands() -> dict[str, Experiment]:
    """Return the experiments that have a command, by its name."""
    return {
        experiment.command.name: experiment for experiment in all_experiments() if experiment.command.name
    }


def windowed_commands() -> dict[str, Experiment]:
    """Return the experiments whose cases a study can measure one by one, by command: those with windows."""
    return {
        name: experiment
        for name, experiment in commands().items()
        if experiment.windowed and not experiment.study
    }


def case_label(case: Case) -> str:
    """Return a short label of a case, different from those of the other cases in its plan."""
    processes = [f"{case.concurrency} process{'es' * (case.concurrency != 1)}"] if case.concurrency else []
    return ", ".join(filter(None, (experiment_of(case).work_label(case), *processes, case.rate_label)))


def unit_of(case: Case) -> str:
    """Return the name of one transaction of a case."""
    return experiment_of(case).unit(case)


def units_of(case: Case) -> str:
    """Return the name of the transactions of a case, in the plural."""
    return f"{unit_of(case)}s"


def rate_units_of(case: Case) -> str:
    """Return the unit of the rates of a case, in the plural."""
    return experiment_of(case).rate_units(case)


def has_window(case: Case) -> bool:
    """Return whether the case counts operations within a window; otherwise it does a fixed amount of work."""
    return experiment_of(case).windowed and case.ops is None
