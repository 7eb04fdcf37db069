"""Functions of `import sqlstress` that measure, and the report that they return."""

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
from sqlstress.experiment import case_label, commands, rate_units_of, windowed_commands
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
    """Figures of a case: the median TPS of its trials, and further figures of the median trial."""

    case: Case
    """Measured case (a set of options)."""
    label: str
    """Short label of the case, such as "8 processes"."""
    tps: float | None
    """Median of the trials' transactions per second, all processes together; None if unknown."""
    rate: float | None
    """Rate by which cases are compared: `counts` per second, such as rows; None without a valid trial."""
    counts: str
    """Kind of operations that `rate` counts: transactions, pairs, rows or cycles."""
    fairness: float | None
    """Jain's fairness index: 1 if all n processes do equal work, 1/n if one does all; None if unknown."""
    longest_wait_ns: int | None
    """Duration of the slowest operation, even if unfinished, in ns; None if unknown."""
    failed: int | None
    """Number of operations that failed because the database was locked; None if unknown."""
    latency: Mapping[str, Latency]
    """Distribution of durations in ns, by kind of operation; empty if unknown."""
    verified: str
    """Result of the check of the data: ok, failed, unknown or skipped."""
    error: str | None
    """Reason why the case was not measured, or not completely; None for a measured case."""

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
    """Conclusion of a report, as a sentence and as data."""

    code: str
    """Stable name of the kind of finding, such as "starvation"."""
    facts: Mapping[str, Any]
    """Facts by name. Times, whose names end in _ns, are in ns; shares are from 0 to 1."""
    text: str
    """One or more sentences that state the facts."""


@dataclass(frozen=True, repr=False)
class Report:
    """Results of a measurement, with conclusions."""

    document: Document
    """Complete report, as saved in a file."""

    @property
    def ok(self) -> bool:
        """Whether everything was measured and no fault was found (exit code 0)."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """Exit code of the command line.

        0: no problem; 1: wrong data or a regression; 3: no answer; 4: not measured; 130: interrupted.
        """
        return exit_code(endings(self.document))

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems of the measurement, one line each, the most severe first."""
        texts = (ending.text or ending.reason for ending in endings(self.document))
        return tuple(_rename(text.removeprefix("Error: ")) for text in texts if text)

    @property
    def interrupted(self) -> bool:
        """Whether the user interrupted the measurement, so that the report only has the results so far."""
        return self.document.interrupted

    @property
    def environment(self) -> Environment:
        """Machine, file system and SQLite builds of the measurement."""
        return self.document.environment

    @property
    def runs(self) -> tuple[Run, ...]:
        """Measured cases with their trials."""
        return self.document.runs

    @property
    def results(self) -> Mapping[str, Any]:
        """Results of studies without cases, such as a crash test, by name of the experiment."""
        return self.document.results

    @cached_property
    def answer(self) -> SearchAnswer | None:
        """Rates that a `limit` search found: `holds`, `breaks` and `about`; None without a search."""
        from sqlstress.analysis.highest_rate import answer_of

        return answer_of(self.document, self.document.limit) if self.document.limit else None

    @property
    def verdict(self) -> str | None:
        """Verdict of an A/B test: pass, fail, inconclusive, or undecided (stopped early); else None."""
        return self.document.ab.verdict if self.document.ab else None

    @property
    def ratio(self) -> float | None:
        """Estimated ratio B / A of an A/B test; None without an estimate."""
        return self.document.ab.looks[-1].ratio if self.document.ab and self.document.ab.looks else None

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Conclusions from the results."""
        from sqlstress.analysis.advice import advise

        return tuple(Finding(finding.code, finding.facts, finding.text) for finding in advise(self.document))

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """Figures of each case, in the order of the plan."""
        return tuple(map(Figure.of, self.runs))

    def __repr__(self) -> str:
        """Return the problems of the measurement, for a failed assertion of pytest."""
        return f"<sqlstress report: {'; '.join(self.problems) or ('ok' if self.ok else 'not ok')}>"

    def _repr_html_(self) -> str:
        """Return the report's heading, tables and first conclusions as HTML for a notebook."""
        from sqlstress.show.page.html_file import report_fragment

        return report_fragment(self.document)

    def to_rows(self) -> list[dict[str, str | float | None]]:
        """Return a flat dict for each case, as input for pandas.DataFrame or polars.DataFrame.

        Keys are the names of CSV columns, which end with the unit. Missing figures are None.
        """
        from sqlstress.show.csv_file import case_rows

        return case_rows(self.document)

    def text(self) -> str:
        """Return the report as text in lines of 80 columns, as on the command line."""
        from sqlstress.show.text import report_text

        return report_text(self.document)

    def save(self, path: str | Path, format: str | None = None) -> None:
        """Write the report to a file, or to standard output for "-".

        By default, the file's suffix selects the format. Raises UsageError for an unknown format, and
        EnvironmentFailure if the file cannot be written.
        """
        from sqlstress.show.formats import FORMATS

        form = format or Path(path).suffix.removeprefix(".")
        if form not in FORMATS:
            raise UsageError(f"unknown format {form!r}. Choose one of {', '.join(FORMATS)}.")
        with _rename_options(_parameter):
            write_atomically(Path(path), FORMATS[form](self.document))


T = TypeVar("T", bound="AnyBench")

ProgressCallback = Callable[[Progress], None]
"""Function that receives the progress of a measurement. It must be quick and must not raise."""


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
    """Measure an experiment, or a plan (a TOML file with cases), and return the report.

    `what` is the name of an experiment (kv, sql, app, exec, methods, keys, cycles, crash), or the path of a
    plan. `options` are those of the command line, with underscores for dashes: `measure(concurrency="1-8",
    buckets=[1, 20], duration="500ms")`. A duration is a text with its unit, or a number of seconds up to 60.
    The databases are in a new folder below `directory`, and are removed at the end unless `keep` is True.
    Wrong data stops the measurement, unless `keep_going` is True. `save` is the path of a JSON file, which is
    written as the report grows. If it cannot be written, a warning is issued.

    Raises UsageError for invalid options, and SqlstressError if nothing could be measured. A case that failed
    is in the report with its error. After Ctrl-C, the report has the results so far.
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
    """Search for the highest rate at which promised latencies are kept, and return the report.

    The report's `answer` has the result. `what` is kv, sql, app or exec, and `options` are those of the
    command `limit`: `limit("sql", script=["transfer.sql"], setup="schema.sql", p99="10ms", concurrency=4)`.
    For the other parameters and the exceptions see `measure`.
    """
    from sqlstress.engine.session import MeasuringSession
    from sqlstress.studies.limit import search_for

    _check_windowed(what)
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
    """Measure two variants, A and B, in turns, until a drop is shown or ruled out, and return the report.

    The report's `verdict` has the result. `a` and `b` are the options of one variant; `options` apply to both
    variants or to the test itself: `ab(a={"synchronous": "full"}, b={"synchronous": "normal"}, concurrency=4,
    max_drop="5%")`. `what` is kv, sql, app or exec. For the other parameters and the exceptions see
    `measure`. The report is `ok` unless the test failed; an inconclusive test is no failure.
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

    _check_windowed(what)
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
    """Hunt for races in SQLite with a built-in load, or in your code: `hunt("app", file="bank.py")`.

    `options` are those of the command `hunt`: `hunt(max_time="30s", driver="apsw")`. If a fault was found,
    the report is not `ok`, and `results["races"]` has the round in which it occurred. For the other
    parameters and the exceptions see `measure`.
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


def _check_windowed(name: str) -> None:
    if name not in windowed_commands():
        names = ", ".join(windowed_commands())
        raise UsageError(f"{name!r:.60} is not available here. Choose one of {names}.")


@contextmanager
def _rename_options(spelling: Callable[[str], str]) -> Iterator[None]:
    try:
        yield
    except SqlstressError as error:
        text = error.assigned if isinstance(error, NoWork) else str(error)
        error.args = (_rename(text, spelling),)
        raise error from None


def _parameter(option: str) -> str:
    return _OTHER_PARAMETERS.get(option, option.replace("-", "_"))


def _key(option: str) -> str:
    return _OTHER_PARAMETERS.get(option, option)


def _rename(text: str, spelling: Callable[[str], str] = _parameter) -> str:
    """Return an error message with options renamed by `spelling`: "--keep-going" to "keep_going"."""
    text = _ARGUMENT.sub(lambda argument: argument[0].lower(), text.replace(" with -o", ""))
    text = _SUGGESTED.sub(lambda near: near[1] + spelling(near[2]), text)
    return _OPTION.sub(lambda option: spelling(option[1]) if option[1] else option[0], text)


_OTHER_PARAMETERS = {"dir": "directory", "keep-going": "keep_going"}
"""Python parameters whose names differ from the option, by name of the option."""
_OPTION = re.compile(r"pip install(?: -\S+)+|(?<![\w'-])--([a-z][a-z0-9-]*)")
"""Pattern of an option in a message, and of a pip command, whose options must not be renamed."""
_SUGGESTED = re.compile(r"(is not an option of [^.]*\. Did you mean )([a-z][a-z0-9-]*)")
"""Pattern of the option that follows "Did you mean" in a message, and that has no dashes there."""
_ARGUMENT = re.compile(r"\A(?:COMMAND|FILE|LOAD|SCRIPT)(?=: )")
"""Pattern of a positional argument's name at the beginning of a message."""


def _options_by_name(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options by command-line name (without "--"), except those with the value None."""
    if "dir" in options:
        raise UsageError("dir is not a parameter. Did you mean directory?")
    return {name.replace("_", "-"): value for name, value in options.items() if value is not None}


def _command(function: str, work: str | Path, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the words for `command` of the report: a function's call, without passwords."""
    settings = (f"{name}={value}" for name, value in options.items())
    return redact_words((f"sqlstress.{function}", str(work), *settings))


def _run_study(
    study: Study[T], opening: BenchOpener[T], save: str | Path | None, progress: ProgressCallback | None
) -> Report:
    from sqlstress.studies.sweep import run_study

    if str(save) == "-":
        raise UsageError('save must be a file name, not "-". To print the report, use print(report.text()).')

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
    """Return the report saved in a JSON file. Raises UsageError, which names the file."""
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
    specs = {name: experiment.study for name, experiment in commands().items()}
    studies = {name: study for name, study in specs.items() if study and study.reads_options}
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


class _ProgressObserver(Observer):
    def __init__(self, watch: ProgressCallback) -> None:
        self._watch = watch

    def progress(self, progress: Progress) -> None:
        self._watch(progress)
