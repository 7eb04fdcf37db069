"""Python API: functions that measure, and the report that they return. Imported by `import sqlstress`."""

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
from sqlstress.engine.study import SILENT, Observer, Progress
from sqlstress.errors import NoWork, SqlstressError, UsageError
from sqlstress.experiment import StudySpec, case_label, commands, rate_units_of, windowed_commands
from sqlstress.options.dsn import redact_words
from sqlstress.options.parsing import suggestion
from sqlstress.plan import Plan, from_toml, options_of_command, plan_of
from sqlstress.registry import DEFAULT
from sqlstress.report import Arm, Environment, Latency, Run, to_json, write_atomically
from sqlstress.report import Report as Document
from sqlstress.report.case import Case
from sqlstress.show.endings import endings, exit_code

if TYPE_CHECKING:
    from sqlstress.engine.study import AnyBench, BenchOpener, Study
    from sqlstress.statistics.search import SearchAnswer


@dataclass(frozen=True, slots=True)
class Figure:
    """The figures of a case: those of its typical trial, the rate being the median over its trials."""

    case: Case
    """Case that was measured."""
    label: str
    """Label of the case, in a few words."""
    tps: float | None
    """Transactions per second of all processes together: the median of the trials; None if unknown."""
    rate: float | None
    """Rate by which cases of the experiment are compared, per second; None if no valid one was measured."""
    counts: str
    """Unit of the rate: transactions, pairs, rows or cycles."""
    fairness: float | None
    """Jain's fairness index of the processes' shares, from 1/n (one process did all the work) to 1."""
    longest_wait_ns: int | None
    """Duration of the slowest operation, in ns, including operations still pending at the window's end."""
    failed: int | None
    """Number of operations given up after the busy timeout."""
    latency: Mapping[str, Latency]
    """Service times by kind of operation, in nanoseconds."""
    verified: str
    """Whether the data matches the workers' acknowledged writes: ok, failed, unknown or skipped."""
    error: str | None
    """Reason why the case was not measured, or only in part; else None."""

    @classmethod
    def of(cls, run: Run) -> Figure:
        """Return the figures of a measured case."""
        trial = run.valid_median_trial()
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
            error=_rename(run.error) if run.error else None,
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """Conclusion of a report."""

    code: str
    """Stable name, such as "best" or "starvation"."""
    facts: Mapping[str, Any]
    """Facts by name: labels, numbers (names of times end in _ns, shares are 0 to 1) and other findings."""
    text: str
    """One or two sentences that state these facts."""


@dataclass(frozen=True, repr=False)
class Report:
    """Results of a measurement, and the conclusions from them."""

    document: Document
    """Complete report, as it is saved."""

    @property
    def ok(self) -> bool:
        """Whether everything was measured and no fault found: the command line would exit with 0."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """Exit code of the command line: 0, 1 (wrong data), 3 (no proof), 4 (failure), 130 (interrupted)."""
        return exit_code(endings(self.document))

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems, a line each, the gravest first."""
        texts = (ending.text or ending.reason for ending in endings(self.document))
        return tuple(_rename(text.removeprefix("Error: ")) for text in texts if text)

    @property
    def interrupted(self) -> bool:
        """Whether the measurement was interrupted. If so, the report has the results up to that time."""
        return self.document.interrupted

    @property
    def environment(self) -> Environment:
        """Machine, file system and SQLite builds of the measurement."""
        return self.document.environment

    @property
    def runs(self) -> tuple[Run, ...]:
        """Measured cases, each with its trials."""
        return self.document.runs

    @property
    def results(self) -> Mapping[str, Any]:
        """Results of studies that are not sweeps of cases, such as crash, by experiment."""
        return self.document.results

    @cached_property
    def answer(self) -> SearchAnswer | None:
        """Result of `limit`: highest rate that `holds`, lowest that `breaks`. None for other reports."""
        from sqlstress.analysis.highest_rate import answer_of

        return answer_of(self.document, self.document.limit) if self.document.limit else None

    @property
    def verdict(self) -> str | None:
        """Verdict of an A/B test: pass, fail, inconclusive, or undecided if it was stopped; else None."""
        return self.document.ab.verdict if self.document.ab else None

    @property
    def ratio(self) -> float | None:
        """Ratio of B's figure to A's in an A/B test, as estimated at the last look; else None."""
        return self.document.ab.looks[-1].ratio if self.document.ab and self.document.ab.looks else None

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Conclusions, one or two sentences each, with a stable code."""
        from sqlstress.analysis.advice import advise

        return tuple(Finding(finding.code, finding.facts, finding.text) for finding in advise(self.document))

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """Figures of each case, in the order of measurement."""
        return tuple(map(Figure.of, self.runs))

    def __repr__(self) -> str:
        """Return a text with the problems, if any. A failed test shows it."""
        return f"<sqlstress report: {'; '.join(self.problems) or ('ok' if self.ok else 'not ok')}>"

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: the heading, the tables and the first conclusions."""
        from sqlstress.show.page.html_file import report_fragment

        return report_fragment(self.document)

    def to_rows(self) -> list[dict[str, str | float | None]]:
        """Return a flat dict for each case, as input of pandas.DataFrame or polars.DataFrame.

        Keys are the columns of the CSV file, and end with the unit. A missing figure is None.
        """
        from sqlstress.show.csv_file import case_rows

        return case_rows(self.document)

    def text(self) -> str:
        """Return the report as text, as the command line prints it, in lines of 80 columns."""
        from sqlstress.show.text import report_text

        return report_text(self.document)

    def save(self, path: str | Path, format: str | None = None) -> None:
        """Write the report to a file. The suffix of the file selects the format, unless `format` names one.

        The path "-" is standard output.

        Raises UsageError if the format is unknown, EnvironmentFailure if the file cannot be written.
        """
        from sqlstress.show.formats import FORMATS

        form = format or Path(path).suffix.removeprefix(".")
        if form not in FORMATS:
            raise UsageError(f"unknown format {form!r}. Choose one of {', '.join(FORMATS)}.")
        with _rename_options(_parameter):
            write_atomically(Path(path), FORMATS[form](self.document))


T = TypeVar("T", bound="AnyBench")

ProgressCallback = Callable[[Progress], None]
"""Callback for the progress of a measurement: called often, so it must be quick and must not raise."""


def measure(
    what: str | Path = DEFAULT,
    *,
    directory: str | Path = ".",
    keep: bool = False,
    keep_going: bool = False,
    save: str | Path | None = None,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> Report:
    """Measure an experiment, or a plan, and return its report.

    `what` is an experiment's name (kv, sql, app, exec, methods, keys, cycles, crash), or the path of a TOML
    plan. `options` are those of the command line, with underscores for dashes: `measure(concurrency="1-8",
    buckets=[1, 20], duration="500ms")`. The databases go into a fresh folder below
    `directory`, and are removed unless `keep`. Wrong data in a case stops the measurement, unless
    `keep_going`. `save` names a JSON file, written as the report grows; if that fails, a warning is issued.
    `progress` is called often. A duration is a text with its unit; a few seconds may be a number.

    Raises UsageError for invalid options, SqlstressError if nothing at all could be measured. A failed case
    is part of the report. Ctrl-C ends the measurement; the report then has the results up to that time.
    """
    from sqlstress.studies.sweep import study_of_plan

    command = _command("measure", what, options)
    with _rename_options(_key if _is_plan(what) else _parameter):
        plan = _plan(what, _options_by_name(options))
        study, session = study_of_plan(plan, Path(directory), keep, command, keep_going)
        return _run_study(study, session, save, progress)


def limit(
    what: str = DEFAULT,
    *,
    directory: str | Path = ".",
    save: str | Path | None = None,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> Report:
    """Search for the highest rate that keeps a latency promise. The report's `answer` has the result.

    `what` is an experiment that has a rate (kv, sql, app, exec), and `options` are those of the command:
    `limit("sql", script=["transfer.sql"], setup="schema.sql", p99="10ms", concurrency=4)`. For
    the other parameters and the exceptions see `measure`.
    """
    from sqlstress.engine.session import MeasuringSession
    from sqlstress.studies.limit import search_for

    _check_has_windows(what)
    with _rename_options(_parameter):
        study = search_for(_options_by_name(options), what)
        session = MeasuringSession((study.case,), Path(directory), False, _command("limit", what, options))
        return _run_study(study, session, save, progress)


def ab(
    what: str = DEFAULT,
    *,
    a: Mapping[str, Any],
    b: Mapping[str, Any],
    directory: str | Path = ".",
    save: str | Path | None = None,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> Report:
    """Measure two settings in turns until a drop is shown or ruled out; see the report's `verdict`.

    `a` and `b` are the options of one arm only; `options` apply to both arms or to the test itself:
    `ab(a={"synchronous": "full"}, b={"synchronous": "normal"}, concurrency=4, max_drop="5%")`. `what` is kv,
    sql, app or exec. For the other parameters and the exceptions see `measure`. The report is `ok` unless
    the test failed; an inconclusive test is no failure.
    """
    from sqlstress.studies.ab import (
        cells,
        checked,
        make_own_python,
        make_study,
        merged,
        split_gate_options,
        to_words,
    )

    _check_has_windows(what)
    with _rename_options(_parameter):
        gate, common = split_gate_options(checked(what, _options_by_name(options)))
        options_a, options_b = (checked(what, _options_by_name(arm)) for arm in (a, b))
        arms = merged(what, common, options_a), merged(what, common, options_b)
        cases = cells(what, arms)
        words_a, words_b = (to_words(what, arm_options) for arm_options in (options_a, options_b))
        study = make_study(cases, gate, (Arm("A", redact_words(words_a)), Arm("B", redact_words(words_b))))
        command = _command("ab", what, {"a": shlex.join(words_a), "b": shlex.join(words_b), **options})
        opening = make_own_python(arms, cases, Path(directory), command)
        return _run_study(study, opening, save, progress)


def hunt(
    what: str | None = None,
    *,
    directory: str | Path = ".",
    save: str | Path | None = None,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> Report:
    """Hunt for races in SQLite with a built-in load, or in your work: `hunt("app", file="bank.py")`.

    `options` are those of the command: `hunt(max_time="30s", driver="apsw")`. If a fault was found, the
    report is not `ok`, and `results["races"]` has the round. For the other parameters and the exceptions
    see `measure`.
    """
    from sqlstress.engine.session import MeasuringSession

    study = commands()["hunt"].study
    assert study
    load = {"load": (what,)} if what else {}
    with _rename_options(_parameter):
        request = study.parse_request({**_options_by_name(options), **load}, None)
        session = MeasuringSession(
            request.cases, Path(directory), False, _command("hunt", what or "", options)
        )
        return _run_study(request.study, session, save, progress)


def _check_has_windows(name: str) -> None:
    if name not in windowed_commands():
        names = ", ".join(windowed_commands())
        raise UsageError(f"{name!r:.60} is not available here. Choose one of {names}.")


@contextmanager
def _rename_options(spelling: Callable[[str], str]) -> Iterator[None]:
    """Replace the command line's options in an error raised by the block, by `spelling(option)`."""
    try:
        yield
    except SqlstressError as error:
        text = error.assigned if isinstance(error, NoWork) else str(error)
        error.args = (_rename(text, spelling),)
        raise error from None


def _parameter(option: str) -> str:
    """Return the parameter of a Python call that corresponds to an option of the command line."""
    return _OTHER_PARAMETERS.get(option, option.replace("-", "_"))


def _key(option: str) -> str:
    """Return the key of a plan that corresponds to an option; a parameter if plans have no such key."""
    return _OTHER_PARAMETERS.get(option, option)


def _rename(text: str, spelling: Callable[[str], str] = _parameter) -> str:
    """Return a message of the command line with parameters, or keys of a plan, instead of options."""
    text = _ARGUMENT.sub(lambda argument: argument[0].lower(), text.replace(" with -o", ""))
    text = _SUGGESTED.sub(lambda near: near[1] + spelling(near[2]), text)
    return _OPTION.sub(lambda option: spelling(option[1]) if option[1] else option[0], text)


_OTHER_PARAMETERS = {"dir": "directory", "keep-going": "keep_going"}
"""Parameters of the functions here whose names differ from the option's, by option."""
_OPTION = re.compile(r"pip install(?: -\S+)+|(?<![\w'-])--([a-z][a-z0-9-]*)")
"""Option of the command line; or a pip command, whose options are not replaced."""
_SUGGESTED = re.compile(r"(is not an option of [^.]*\. Did you mean )([a-z][a-z0-9-]*)")
"""Message that suggests an option without its dashes."""
_ARGUMENT = re.compile(r"\A(?:COMMAND|FILE|LOAD|SCRIPT)(?=: )")
"""Name of a command's argument, at the beginning of a message."""


def _options_by_name(options: Mapping[str, Any]) -> dict[str, Any]:
    if "dir" in options:
        raise UsageError("dir is not a parameter. Did you mean directory?")
    return {name.replace("_", "-"): value for name, value in options.items() if value is not None}


def _command(function: str, work: str | Path, options: Mapping[str, Any]) -> tuple[str, ...]:
    settings = (f"{name}={value}" for name, value in options.items())
    return redact_words((f"sqlstress.{function}", str(work), *settings))


def _run_study(
    study: Study[T], opening: BenchOpener[T], save: str | Path | None, progress: ProgressCallback | None
) -> Report:
    from sqlstress.studies.sweep import run_study

    if str(save) == "-":
        raise UsageError(
            'save must be a file name, not "-". To print the report, use print(report.text()).',
        )

    def save_document(document: Document) -> None:
        if save is not None:
            try:
                write_atomically(Path(save), to_json(document))
            except SqlstressError as error:
                warnings.warn(f"the report is not saved: {_rename(str(error))}", stacklevel=3)

    return Report(
        run_study(study, opening, save_document, _ProgressObserver(progress) if progress else SILENT)
    )


def read(path: str | Path) -> Report:
    """Return a saved report. Raises UsageError with a message that names the file."""
    from sqlstress.report import read as read_document

    return Report(read_document(Path(path)))


def _is_plan(work: str | Path) -> bool:
    return isinstance(work, Path) or work.endswith(".toml")


def _plan(work: str | Path, options: Mapping[str, Any]) -> Plan:
    if _is_plan(work):
        if options:
            raise UsageError(f"a plan has its options in the file. Leave out {', '.join(options)}.")
        return Plan(from_toml(Path(work)))
    work = str(work)
    studies = _studies()
    if work in studies:
        observes = studies[work].observes_only
        remedy = f"the command line: sqlstress {work} FILE" if observes else f"sqlstress.{work}()"
        raise UsageError(f"measure() does not support {work}. Use {remedy}.")
    names = [name for name in commands() if name not in studies]
    if work not in names:
        raise UsageError(
            f"no such experiment: {work!r:.60}.{suggestion(work, names)} The experiments are "
            f"{', '.join(names)}; the name of a plan ends with .toml."
        )
    flags = {option.name for option in options_of_command(work) if option.flag}
    return plan_of({name: value for name, value in options.items() if value or name not in flags}, work)


def _studies() -> dict[str, StudySpec]:
    """Return the studies that `measure` does not support, by command: they parse the options themselves."""
    specs = {name: experiment.study for name, experiment in commands().items()}
    return {name: study for name, study in specs.items() if study and study.reads_options}


class _ProgressObserver(Observer):
    """Observer that reports progress to a function."""

    def __init__(self, watch: ProgressCallback) -> None:
        self._watch = watch

    def progress(self, progress: Progress) -> None:
        self._watch(progress)
