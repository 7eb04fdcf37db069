"""The Python API: `import sqlstress`, measure, and ask the report. The command line does the same."""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlstress.analysis.group import rate_of
from sqlstress.engine.study import NOBODY, Observer, Progress
from sqlstress.errors import NoWork, SqlstressError, UsageError
from sqlstress.experiment import StudySpec, case_label, commands, rate_units_of, windowed_commands
from sqlstress.options.dsn import redacted
from sqlstress.options.parsing import suggestion
from sqlstress.plan import Planned, from_toml, options_of_command, planned
from sqlstress.registry import DEFAULT
from sqlstress.report import Arm, Environment, Latency, Run, to_json, write_atomically
from sqlstress.report import Report as Document
from sqlstress.report.case import Case
from sqlstress.show.endings import endings, exit_code

if TYPE_CHECKING:
    from sqlstress.engine.study import AnyBench, Opening, Study
    from sqlstress.statistics.search import Answer


@dataclass(frozen=True, slots=True)
class Figure:
    """The figures of a case: those of its typical trial, the rate being the median over its trials."""

    case: Case
    """What was measured."""
    label: str
    """The same in a few words."""
    tps: float | None
    """Transactions a second, all processes together: the median; None when it could not be measured."""
    rate: float | None
    """What cases of its experiment are compared by, a second; None where there is none to be believed."""
    counts: str
    """What the rate counts: transactions, pairs, rows or cycles."""
    fairness: float | None
    """Jain's index of the processes' shares, 1/n to 1."""
    longest_wait_ns: int | None
    """The slowest operation, one still pending at the window's end included."""
    failed: int | None
    """Operations given up after the busy time-out."""
    latency: Mapping[str, Latency]
    """Service times by kind of operation, in nanoseconds."""
    verified: str
    """Whether the data was what the workers were told it is: ok, failed, unknown or skipped."""
    error: str | None
    """Why it could not be measured, or not wholly; None when it could."""

    @classmethod
    def of(cls, run: Run) -> Figure:
        """Return the figures of a case that was measured."""
        trial = run.shown()
        return cls(
            case=run.case,
            label=case_label(run.case),
            tps=run.median_tps(),
            rate=rate_of(run),
            counts=rate_units_of(run.case),
            fairness=trial.fairness if trial else None,
            longest_wait_ns=trial.longest_wait_ns if trial else None,
            failed=trial.failed if trial else None,
            latency=trial.latency if trial else {},
            verified=run.verdict.status,
            error=_renamed(run.error) if run.error else None,
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a report says."""

    code: str
    """Stable name, such as "best" or "starvation"."""
    facts: Mapping[str, Any]
    """What it says, as data: labels, numbers (times end in _ns, shares are 0 to 1), and other findings."""
    text: str
    """The same in a sentence or two, for people."""


@dataclass(frozen=True, repr=False)
class Report:
    """What was measured, and what it says."""

    document: Document
    """All of it, as it is saved."""

    @property
    def ok(self) -> bool:
        """Whether all was measured, and nothing found wrong: the command line would exit 0."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """With what the command line would exit: 0, 1 (wrong data), 3 (unproved), 4 (a failure), 130."""
        return exit_code(endings(self.document))

    @property
    def problems(self) -> tuple[str, ...]:
        """What is not as it should be, a line each, the gravest first."""
        texts = (ending.text or ending.reason for ending in endings(self.document))
        return tuple(_renamed(text.removeprefix("Error: ")) for text in texts if text)

    @property
    def interrupted(self) -> bool:
        """Whether somebody stopped it: what was measured by then is there."""
        return self.document.interrupted

    @property
    def environment(self) -> Environment:
        """Where it was measured."""
        return self.document.environment

    @property
    def runs(self) -> tuple[Run, ...]:
        """The cases that were measured, each with its trials."""
        return self.document.runs

    @property
    def results(self) -> Mapping[str, Any]:
        """What studies have found that are no sweeps of cases, such as kills, by experiment."""
        return self.document.results

    @cached_property
    def answer(self) -> Answer | None:
        """Of a search, the highest rate that `holds`, and the lowest that does not (`breaks`); else None."""
        from sqlstress.analysis.highest_rate import answered

        return answered(self.document, self.document.limit) if self.document.limit else None

    @property
    def verdict(self) -> str | None:
        """Of an A/B test: pass, fail, inconclusive, or undecided where it was stopped; else None."""
        return self.document.ab.verdict if self.document.ab else None

    @property
    def ratio(self) -> float | None:
        """Of an A/B test, B's figure over A's, as the last look estimated it; else None."""
        return self.document.ab.looks[-1].ratio if self.document.ab and self.document.ab.looks else None

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What it says, a sentence or two each, with a stable code."""
        from sqlstress.analysis.advice import advise

        return tuple(Finding(one.code, one.facts, one.text) for one in advise(self.document))

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """The figures of each case, in the order in which they were measured."""
        return tuple(map(Figure.of, self.runs))

    def __repr__(self) -> str:
        """Say what is wrong, if anything is: a test that fails shows this."""
        return f"<sqlstress report: {'; '.join(self.problems) or ('ok' if self.ok else 'not ok')}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: what was measured, the tables, and the first conclusions."""
        from sqlstress.show.page.html_file import report_fragment

        return report_fragment(self.document)

    def to_rows(self) -> list[dict[str, str | float | None]]:
        """Return a flat dict for each case: what pandas.DataFrame and polars.DataFrame take.

        The names are those of the CSV's columns, and end with the unit. A missing figure is None.
        """
        from sqlstress.show.csv_file import case_rows

        return case_rows(self.document)

    def text(self) -> str:
        """Return what the command line prints, in lines of 80 columns."""
        from sqlstress.show.text import report_text

        return report_text(self.document)

    def save(self, path: str | Path, format: str | None = None) -> None:
        """Write it to a file, in the format that its name ends with unless another one is named.

        The path "-" is the standard output.

        Raises UsageError for a format that is not known, EnvironmentFailure when it can't be written.
        """
        from sqlstress.show.formats import FORMATS

        form = format or Path(path).suffix.removeprefix(".")
        if form not in FORMATS:
            raise UsageError(f"unknown format {form!r}. Choose one of {', '.join(FORMATS)}.")
        with _rename_options(_parameter):
            write_atomically(Path(path), FORMATS[form](self.document))


T = TypeVar("T", bound="AnyBench")

Watch = Callable[[Progress], None]
"""Called often with how far the measurement has come; must be quick, and must not raise."""


def measure(
    what: str | Path = DEFAULT,
    *,
    directory: str | Path = ".",
    keep: bool = False,
    keep_going: bool = False,
    save: str | Path | None = None,
    progress: Watch | None = None,
    **options: Any,
) -> Report:
    """Measure an experiment, or a plan, and return its report.

    `what` is an experiment's name (kv, sql, app, exec, methods, keys, cycles, crash), or the path of a TOML
    plan. `options` are those of the command line, with underscores for dashes: `measure(concurrency="1-8",
    buckets=[1, 20], duration="500ms")`. The databases go into a fresh folder below
    `directory`, and are removed unless `keep`. The first case with wrong data stops it, unless `keep_going`.
    `save` names a JSON file, written as the report grows; where that can't be, it warns. `progress` is called
    often. A duration is a text with its unit; a few seconds may be a number.

    Raises UsageError for options that can't be carried out, SqlstressError when nothing could be measured at
    all. A case that fails is part of the report. Ctrl-C ends it: what was measured by then is returned.
    """
    from sqlstress.studies.sweep import study_of_plan

    command = _command("measure", what, options)
    with _rename_options(_key if _is_plan(what) else _parameter):
        plan = _planned(what, _given(options))
        study, session = study_of_plan(plan, Path(directory), keep, command, keep_going)
        return _carried_out(study, session, save, progress)


def limit(
    what: str = DEFAULT,
    *,
    directory: str | Path = ".",
    save: str | Path | None = None,
    progress: Watch | None = None,
    **options: Any,
) -> Report:
    """Search for the highest rate that holds a promise, and return the report: `answer` is what was found.

    `what` is an experiment that has a rate (kv, sql, app, exec), and `options` are those of the command:
    `limit("sql", script=["transfer.sql"], setup="schema.sql", p99="10ms", concurrency=4)`. The others are
    those of `measure`, and so is what it raises.
    """
    from sqlstress.engine.session import Session
    from sqlstress.studies.limit import search_for

    _check_has_windows(what)
    with _rename_options(_parameter):
        study = search_for(_given(options), what)
        session = Session((study.case,), Path(directory), False, _command("limit", what, options))
        return _carried_out(study, session, save, progress)


def ab(
    what: str = DEFAULT,
    *,
    a: Mapping[str, Any],
    b: Mapping[str, Any],
    directory: str | Path = ".",
    save: str | Path | None = None,
    progress: Watch | None = None,
    **options: Any,
) -> Report:
    """Measure two settings in turns until a drop is shown or ruled out; the report's `verdict` says which.

    `a` and `b` are what only that arm has, and `options` what both have, or what is asked of the test:
    `ab(a={"synchronous": "full"}, b={"synchronous": "normal"}, concurrency=4, max_drop="5%")`. `what` is kv,
    sql, app or exec. The others are those of `measure`, and so is what it raises. The report is `ok` unless
    it failed; that it stayed inconclusive is no failure.
    """
    from sqlstress.studies.ab import cells, checked, merged, of_gate_and_load, own_python, study_of, typed

    _check_has_windows(what)
    with _rename_options(_parameter):
        gate, common = of_gate_and_load(checked(what, _given(options)))
        own_a, own_b = (checked(what, _given(arm)) for arm in (a, b))
        arms = merged(what, common, own_a), merged(what, common, own_b)
        cases = cells(what, arms)
        words_a, words_b = (typed(what, own) for own in (own_a, own_b))
        study = study_of(cases, gate, (Arm("A", redacted(words_a)), Arm("B", redacted(words_b))))
        command = _command("ab", what, {"a": shlex.join(words_a), "b": shlex.join(words_b), **options})
        opening = own_python(arms, cases, Path(directory), command)
        return _carried_out(study, opening, save, progress)


def hunt(
    what: str | None = None,
    *,
    directory: str | Path = ".",
    save: str | Path | None = None,
    progress: Watch | None = None,
    **options: Any,
) -> Report:
    """Hunt for races, in SQLite by a load of its own, or in your work: `hunt("app", file="bank.py")`.

    `options` are those of the command: `hunt(max_time="30s", driver="apsw")`. Where something was found the
    report is not `ok`, and `results["races"]` has the round. The others are those of `measure`, and so is
    what it raises.
    """
    from sqlstress.engine.session import Session

    study = commands()["hunt"].study
    assert study
    load = {"load": (what,)} if what else {}
    with _rename_options(_parameter):
        request = study.parse_request({**_given(options), **load}, None)
        session = Session(request.cases, Path(directory), False, _command("hunt", what or "", options))
        return _carried_out(request.study, session, save, progress)


def _check_has_windows(what: str) -> None:
    if what not in windowed_commands():
        known = ", ".join(windowed_commands())
        raise UsageError(f"{what!r:.60} is not available here. Choose one of {known}.")


@contextmanager
def _rename_options(spelling: Callable[[str], str]) -> Iterator[None]:
    """Rename each option of the command line in an error, to what `spelling` returns."""
    try:
        yield
    except SqlstressError as error:
        text = error.assigned if isinstance(error, NoWork) else str(error)
        error.args = (_renamed(text, spelling),)
        raise error from None


def _parameter(option: str) -> str:
    """Return the parameter of a call in Python that does what an option does."""
    return _OTHER_PARAMETERS.get(option, option.replace("-", "_"))


def _key(option: str) -> str:
    """Return the key in a plan that does what an option does; a parameter if plans have no such key."""
    return _OTHER_PARAMETERS.get(option, option)


def _renamed(text: str, spelling: Callable[[str], str] = _parameter) -> str:
    """Return a message of the command line with the names of parameters, or of a plan's keys."""
    text = _ARGUMENT.sub(lambda argument: argument[0].lower(), text.replace(" with -o", ""))
    text = _SUGGESTED.sub(lambda near: near[1] + spelling(near[2]), text)
    return _OPTION.sub(lambda option: spelling(option[1]) if option[1] else option[0], text)


_OTHER_PARAMETERS = {"dir": "directory", "keep-going": "keep_going"}
"""Parameters of the functions here, by the option that does the same."""
_OPTION = re.compile(r"pip install(?: -\S+)+|(?<![\w'-])--([a-z][a-z0-9-]*)")
"""An option as the command line spells it; or a command of pip, whose options keep their names."""
_SUGGESTED = re.compile(r"(is not an option of [^.]*\. Did you mean )([a-z][a-z0-9-]*)")
"""A message that suggests an option."""
_ARGUMENT = re.compile(r"\A(?:COMMAND|FILE|LOAD|SCRIPT)(?=: )")
"""The name of a command's argument, at the beginning of a message."""


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    if "dir" in options:
        raise UsageError("dir is not a parameter. Did you mean directory?")
    return {name.replace("_", "-"): value for name, value in options.items() if value is not None}


def _command(function: str, what: str | Path, options: Mapping[str, Any]) -> tuple[str, ...]:
    said = (f"{name}={value}" for name, value in options.items())
    return redacted((f"sqlstress.{function}", str(what), *said))


def _carried_out(
    study: Study[T], opening: Opening[T], save: str | Path | None, progress: Watch | None
) -> Report:
    from sqlstress.studies.sweep import carry_out

    if str(save) == "-":
        raise UsageError(
            'save must be a file name, not "-". To print the report, use print(report.text()).',
        )

    def keep_it(document: Document) -> None:
        if save is not None:
            try:
                write_atomically(Path(save), to_json(document))
            except SqlstressError as error:
                warnings.warn(f"the report is not saved: {_renamed(str(error))}", stacklevel=3)

    return Report(carry_out(study, opening, keep_it, _Watched(progress) if progress else NOBODY))


def read(path: str | Path) -> Report:
    """Return a saved report. Raises UsageError, in a line that names the file."""
    from sqlstress.report import read as read_document

    return Report(read_document(Path(path)))


def _is_plan(what: str | Path) -> bool:
    return isinstance(what, Path) or what.endswith(".toml")


def _planned(what: str | Path, given: Mapping[str, Any]) -> Planned:
    if _is_plan(what):
        if given:
            raise UsageError(f"a plan has its options in the file. Leave out {', '.join(given)}.")
        return Planned(from_toml(Path(what)))
    what = str(what)
    studies = _studies()
    if what in studies:
        observes = studies[what].observes_only
        remedy = f"the command line: sqlstress {what} FILE" if observes else f"sqlstress.{what}()"
        raise UsageError(f"measure() does not support {what}. Use {remedy}.")
    known = [name for name in commands() if name not in studies]
    if what not in known:
        raise UsageError(
            f"no such experiment: {what!r:.60}.{suggestion(what, known)} The experiments are "
            f"{', '.join(known)}; the name of a plan ends with .toml."
        )
    flags = {option.name for option in options_of_command(what) if option.flag}
    return planned({name: value for name, value in given.items() if value or name not in flags}, what)


def _studies() -> dict[str, StudySpec]:
    """Return the studies that `measure` does not support, by command: they read the options themselves."""
    specs = {name: experiment.study for name, experiment in commands().items()}
    return {name: study for name, study in specs.items() if study and study.reads_options}


class _Watched(Observer):
    """Tells a function how far a measurement has come."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def progress(self, progress: Progress) -> None:
        self._watch(progress)
