"""The face of an experiment, and the registry of those that there are.

An experiment is one package below `sqlstress.experiments`. Its `experiment` module has what its cases say
beside what all cases say, its options, which cases they mean, and where its other parts are: imported
when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, cast

from sqlstress.options.option import Nothing, Option

if TYPE_CHECKING:
    from sqlstress.engine.protocols import Work
    from sqlstress.engine.session import Bench
    from sqlstress.engine.study import Study
    from sqlstress.plan import Request
    from sqlstress.report import Run
    from sqlstress.report.case import Case
    from sqlstress.show.shown import ResultShown, Shown

EXPERIMENTS: dict[str, str] = {
    "kv": "sqlstress.experiments.kv.experiment:KV",
    "methods": "sqlstress.experiments.methods.experiment:METHODS",
    "keys": "sqlstress.experiments.keys.experiment:KEYS",
    "cycles": "sqlstress.experiments.cycles.experiment:CYCLES",
    "crash": "sqlstress.experiments.crash.experiment:CRASH",
    "sql": "sqlstress.experiments.sql.experiment:SQL",
    "classic": "sqlstress.experiments.kv.experiment:CLASSIC",
    "exec": "sqlstress.experiments.exec.experiment:EXEC",
    "app": "sqlstress.experiments.app.experiment:APP",
    "races": "sqlstress.experiments.hunt.experiment:HUNT",
    "watch": "sqlstress.experiments.watch.experiment:WATCH",
}
"""Name of an experiment, as cases and plans have it → where its face is. The first one needs no name."""

DEFAULT = next(iter(EXPERIMENTS))


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The command that measures an experiment."""

    name: str = ""
    """"": the cases of another experiment lead to this one."""
    summary: str = ""
    """It in a line, for the list of all commands."""
    help: str = ""
    """It in a few sentences."""
    example: str = ""
    """A command line that works."""
    takes: tuple[str, ...] = ()
    """Suffixes of the files that it takes as first argument: ".py"."""
    main_options: tuple[str, ...] = ()
    """The options that are used most, by name: `--help` shows them first. Some may be those of all commands.

    Of the command that needs no name, the list of all commands shows them too."""


@dataclass(frozen=True, slots=True)
class Alike:
    """Which cases of an experiment are shown and compared together."""

    table: str = ""
    """Experiments of which this is the same stand in the same tables; "": the experiment's name."""
    one_table: Callable[[Case], Case] = lambda case: replace(
        case, concurrency=1, buckets=1, seed=0, arrivals=case.arrivals and case.arrivals.at(1)
    )
    """A case without what may differ within a table."""
    traits: Callable[[Case], Mapping[str, str]] = lambda case: {}
    """A case in words, by option: cases that differ in one of them only share a table. None: they don't."""
    same_work: Callable[[Case], Case] = lambda case: case
    """A case without what says nothing of the work that was done."""
    may_be_unknown: Mapping[str, tuple[str, Callable[[Case], int | None]]] = field(default_factory=dict)
    """Figures that are 0 where they are not known, of published reports: name → (in words, of a case)."""
    forget: Callable[[Case], Case] = lambda case: case
    """A case without those figures."""


@dataclass(frozen=True, slots=True)
class Words:
    """What an experiment is called in the sentences that all share."""

    does: str = ""
    """What its processes do, to tell it from others that stand in the same tables."""
    work_of: Callable[[Case], str] = lambda case: case.workload
    """What each process of a case does, to tell it from the others of its plan."""
    in_label: frozenset[str] = frozenset()
    """Fields of the spec that this says already."""
    unit: str = "transaction"
    """What one transaction of the report is."""
    counted: str = ""
    """What it is compared by, in the plural; "": its transactions."""
    strangers: str = "another program"
    """Who may have changed what is defined, when somebody has, as the subject of a sentence."""
    instead: str = ""
    """What the user can do about it, as the end of that sentence."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What the processes of an experiment do, as far as those who run and show them must know."""

    sweeps: bool = False
    """Whether its cases are layouts with numbers of processes: then tables and places say it so."""
    many_files: bool = True
    """Whether its data may lie in several files; of one that has a single one nobody says so."""
    windowed: bool = False
    """Whether what completes within a window is counted, unless a number of operations is given."""
    repeats_empty: bool = False
    """Whether a window in which no operation ended is measured again; else it is 0 TPS."""
    whole_script: bool = False
    """Whether the files serve a whole sweep, and time counts from the first process's start."""
    connects: bool = True
    """Whether its workers open the database with the settings of the case; else nothing is known of that."""
    sets: bool = True
    """Whether its workers' connections have the settings of the case; else those of the user's code."""
    own_folder: bool = False
    """Whether its workers may make files beside the database: each trial has a folder of its own then."""
    stays: bool = False
    """Whether a worker that has closed its store has nothing left of a trial: it stays for the next one."""
    starts_programs: bool = False
    """Whether its workers start programs all the time, which end soon."""
    begins_again: bool = True
    """Whether what a server refuses is begun again until the time-out; else its cases say how often."""
    operations_each: int = 1
    """Operations of one transaction."""
    transactions_each: Callable[[Case], int] = lambda case: 1
    """Transactions that such an operation of a case stands for."""
    writes: Callable[[Case], bool] = lambda case: True
    """Whether the workers of a case write at all."""
    loop_of: Callable[[Case], str] = lambda case: ""
    """Which loop drives a case, native or python; "": there is but one."""
    guess_s: Callable[[Case], float] = lambda case: case.duration_s + case.warmup_s
    """How long the work of one trial takes, about, in seconds."""
    timeout_s: Callable[[Case], float] = lambda case: 0.0
    """After which time of work, in seconds, a case gives up by itself; 0: it does not."""
    hides_waits: Callable[[Case], bool] = lambda case: False
    """Whether the windows of a case are too short for its waits, and nobody asked for these windows: of such
    cases of a sweep, the largest has one longer window too."""


@dataclass(frozen=True, slots=True)
class StudyOf:
    """A study that decides what is measured, and the result that it leaves in a report."""

    result: str
    """Import string of the dataclass of what it finds."""
    result_key: tuple[str, str]
    """Where that stands in the JSON of a report: an object, and its key in there."""
    called: str
    """What such a measurement is called, with its article."""
    opens: str = ""
    """Import string of (cases, selection) → the study."""
    looks_on: bool = False
    """Whether it only looks at what others do: it makes no databases, and shows each moment."""
    asks: str = ""
    """Import string of (options as they were typed, how words are read as options) → what is asked for, of an
    experiment that measures the cases of others; "": its options say the cases."""

    def open(self, cases: Sequence[Case], selection: Any) -> Study[Bench]:
        """Make the study that the experiment's options ask for."""
        return cast("Study[Bench]", resolve_name(self.opens)(cases, selection))

    def result_type(self) -> type:
        """Return the dataclass of what it finds."""
        return cast(type, resolve_name(self.result))


@dataclass(frozen=True, slots=True)
class Experiment:
    """What the rest of the program asks of an experiment."""

    name: str
    """What cases, plans and reports call it."""
    spec: type = Nothing
    """The dataclass of what only its cases have; its fields are options."""
    key: str | None = None
    """Where that stands in the JSON of a case; None: its fields stand beside those that all cases have."""
    beside: tuple[str, ...] = ()
    """Fields of it that stand there all the same."""
    command: CommandLine = CommandLine()
    options: tuple[Option, ...] = ()
    """Its options, in the order of `--help`."""
    without: Mapping[str, str] = field(default_factory=dict)
    """Options of others that it has not got: name → why."""
    by_itself: Mapping[str, Any] = field(default_factory=dict)
    """Of its options, which make several cases of one: what they are where each is measured by itself."""
    selection: type | None = None
    """The dataclass of options that only say which cases there are, and stand in none of them."""
    cases: Callable[[Request[Any, Any]], Iterator[Case]] = lambda ask: iter(())
    """What its options mean. Raises UsageError when they contradict each other."""
    alike: Alike = Alike()
    words: Words = Words()
    behaviour: Behaviour = Behaviour()
    work: str = ""
    """Import string of the parent's half; "": a study plays it."""
    worker: str = ""
    """Import string of the worker's half: (case, place, worker, salt, shared) → Source."""
    imports: Callable[[Case], tuple[str, ...]] = lambda case: ()
    """Modules that its processes import beside their halves."""
    companions: Mapping[str, str] = field(default_factory=dict)
    """Processes that it may run beside the workers: name → import string."""
    needless: str = ""
    """Import string of (case, its own runs so far) → why it need not be measured, or None."""
    study: StudyOf | None = None
    """What decides which of its cases are measured; None: each is, as many times as asked for."""
    shown: str = "sqlstress.show.shown:Shown"
    """Import string of what shows it: a class without arguments."""
    variant: Callable[[Case], Experiment] | None = None
    """The face of a case, where some cases are called otherwise."""

    @property
    def tables(self) -> str:
        """In whose tables it stands."""
        return self.alike.table or self.name

    @property
    def in_plans(self) -> bool:
        """Whether a plan can name it: where no study decides what is measured."""
        return self.command.name != "" and self.study is None

    @property
    def units(self) -> str:
        """What is counted, in the plural."""
        return f"{self.words.unit}s"

    @property
    def rate_counts(self) -> str:
        """What it is compared by, in the plural."""
        return self.words.counted or self.units

    def show(self) -> Shown:
        """Return what shows it."""
        return cast("Shown", _made(self.shown))

    def show_result(self) -> ResultShown[Any]:
        """Return what shows what its study finds."""
        return cast("ResultShown[Any]", self.show())

    def open_work(self, *given: Any) -> Work:
        """Make the parent's half of one trial."""
        return cast("Work", resolve_name(self.work)(*given))

    def is_needless(self, case: Case, runs: Sequence[Run]) -> str | None:
        """Return why a case need not be measured after these runs; None when it must."""
        own = [run for run in runs if run.case.workload == self.name]
        return cast("str | None", resolve_name(self.needless)(case, own)) if self.needless else None


@cache
def _made(target: str) -> Any:
    return resolve_name(target)()


def face(name: str) -> Experiment:
    """Return the experiment with this name. Raises KeyError."""
    return cast(Experiment, resolve_name(EXPERIMENTS[name]))


def face_of(case: Case) -> Experiment:
    """Return the experiment of a case."""
    found = face(case.workload)
    return found.variant(case) if found.variant else found


def faces() -> tuple[Experiment, ...]:
    """Return all experiments, in their order."""
    return tuple(map(face, EXPERIMENTS))


def studies() -> dict[str, StudyOf]:
    """Return the studies that leave a result in a report, by the name of their experiment."""
    return {one.name: one.study for one in faces() if one.study}


def commands() -> dict[str, Experiment]:
    """Return the commands that measure an experiment, each with its experiment."""
    return {one.command.name: one for one in faces() if one.command.name}


def with_windows() -> dict[str, Experiment]:
    """Return the commands whose cases a study can measure one by one: those with windows."""
    return {name: one for name, one in commands().items() if one.behaviour.windowed and not one.study}


def label(case: Case) -> str:
    """Return a case in a few words, to tell it from the others of its plan."""
    processes = [f"{case.concurrency} process{'es' * (case.concurrency != 1)}"] if case.concurrency else []
    return ", ".join(filter(None, (face_of(case).words.work_of(case), *processes, case.rate_label)))


def has_window(case: Case) -> bool:
    """Return whether what completes within a window is counted; else a fixed amount of work is done."""
    return face_of(case).behaviour.windowed and case.ops is None
